"""The weights of an adapted network, each computed when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from fedfuse.core.errors import DataError, shortened
from fedfuse.fusing.adapters.base import Base
from fedfuse.fusing.adapters.config import AdapterConfig
from fedfuse.fusing.adapters.layers import Change, Kind, matrix_of, matrix_shape, weight_of
from fedfuse.fusing.members.tensors import FileTensors, check_finite

PREFIX = "base_model.model."
ORIGINAL = ".original_module."
"""What a layer was before an adapter brought its own."""
INSIDE = (".base_layer.", ".modules_to_save.")
"""Words that wrappers of peft put into names."""
ENDINGS: Mapping[str, str] = {
    ".lora_A.weight": "A",
    ".lora_B.weight": "B",
    ".lora_embedding_A": "A",
    ".lora_embedding_B": "B",
    ".lora_magnitude_vector": "m",
    ".lora_magnitude_vector.weight": "m",
}
PARTS: Mapping[str, str] = {"A": "lora_A", "B": "lora_B", "m": "lora_magnitude_vector"}


def own_name(place: str) -> str:
    """A tensor that an adapter brings whole, by its name in the network."""
    name = place.removeprefix(PREFIX)
    for word in INSIDE:
        name = name.replace(word, ".")
    return name


@dataclass(frozen=True)
class Layer:
    """A layer with a low-rank change: its name in the network, and where its factors lie in the adapter's file."""

    name: str
    kind: Kind
    factors: Mapping[str, str]


class AdaptedTensors(Mapping[str, Tensor]):
    """A base's weights with the changes of an adapter, by the names that a classifier's files have."""

    def __init__(self, base: Base, file: FileTensors, config: AdapterConfig, where: Path) -> None:
        self.base, self.file, self.config, self.where = base, file, config, where
        self.layers: dict[str, Layer] = {}
        """With a low-rank change, by the names of their weights."""
        self.saved: dict[str, str] = {}
        """Tensors that the adapter brings whole, and where they lie in its file."""
        self._sort()
        self.shapes = base.shapes
        self._check()

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.shapes:
            raise KeyError(name)
        layer = self.layers.get(name)
        if layer is None:
            return self.unchanged(name)
        matrix = self.change(name).of(matrix_of(self.unchanged(name), layer.kind))
        weight = weight_of(matrix, layer.kind, self.shapes[name]).to(torch.float32).contiguous()
        check_finite({name: weight}, str(self.where))
        return weight

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)

    @property
    def changed(self) -> frozenset[str]:
        """The names of tensors that are not the base's."""
        return frozenset(self.layers) | frozenset(self.saved)

    @property
    def dtype(self) -> str:
        """Of most weights of the base."""
        return self.base.folder.dtype

    def unchanged(self, name: str) -> Tensor:
        """A tensor before its low-rank change."""
        return self._read(self.saved[name]) if name in self.saved else self.base.tensor(name)

    def change(self, name: str) -> Change:
        """The low-rank change of a layer."""
        layer = self.layers[name]
        parts = {part: self._read(place).double() for part, place in layer.factors.items()}
        left = parts["B"].flatten(1) * self.config.scaling_of(layer.name)
        magnitudes = parts["m"].flatten() if "m" in parts else None
        return Change(left, parts["A"].flatten(1), magnitudes)

    def is_product(self, name: str) -> bool:
        """Whether a layer is the base's plus a product, and nothing else."""
        return name in self.layers and "m" not in self.layers[name].factors and name not in self.saved

    def _read(self, place: str) -> Tensor:
        tensor = self.file[place]
        check_finite({place: tensor}, str(self.where))
        return tensor

    def _sort(self) -> None:
        """Which tensor of the file belongs to which of the network."""
        factors: dict[str, dict[str, str]] = {}
        for place in self.file:
            name = place.removeprefix(PREFIX)
            ending = next((one for one in ENDINGS if name.endswith(one)), None)
            if ending is not None:
                factors.setdefault(name.removesuffix(ending), {})[ENDINGS[ending]] = place
            elif ORIGINAL not in name:
                self.saved[self._found(own_name(place), place)] = place
        for name, parts in factors.items():
            weight = self._found(f"{name}.weight", next(iter(parts.values())))
            own = self._own[weight].removesuffix(".weight")
            if own not in self.base.kinds:
                raise DataError(f"{self.where}: '{shortened(name)}' is a layer whose change by LoRA is not known here")
            self.layers[weight] = Layer(own, self.base.kinds[own], parts)

    @cached_property
    def _own(self) -> dict[str, str]:
        """The network's names by those of files."""
        return {name: own for own, name in self.base.names.items()}

    def _found(self, name: str, place: str) -> str:
        """A tensor by its name in files, which an adapter may call as they do or as the network does."""
        found = self.base.names.get(name, name if name in self._own else None)
        if found is None:
            raise DataError(
                f"{self.where}: '{shortened(place)}' is for a layer that {self.base.folder.path} does not have; the "
                "adapter is of another base, or of a kind that is not known here"
            )
        return found

    def _check(self) -> None:
        """All is there, and fits."""
        for name, shape in self.shapes.items():
            if name in self.saved:
                self._require(self.where, self.saved[name], self.file.shapes[self.saved[name]], shape)
            elif name in self.base.places:
                place = self.base.places[name]
                self._require(self.base.folder.path, place, self.base.folder.shapes[place], shape)
            else:
                raise DataError(f"neither {self.base.folder.path} nor {self.where} holds '{name}' of the network")
        for weight, layer in self.layers.items():
            self._check_layer(layer, self.shapes[weight])

    def _check_layer(self, layer: Layer, shape: tuple[int, ...]) -> None:
        (rows, _), rank, ones = (
            matrix_shape(shape, layer.kind),
            self.config.rank_of(layer.name),
            (1,) * (len(shape) - 2),
        )
        inputs = shape[:1] if layer.kind in ("transposed", "embedding") else shape[1:]
        wanted: dict[str, tuple[int, ...]] = {"A": (rank, *inputs), "B": (rows, rank, *ones)}
        if self.config.has_magnitudes:
            wanted["m"] = (1, rows, *ones) if layer.kind == "convolution" else (rows,)
        for part, told in PARTS.items():
            if (part in layer.factors) != (part in wanted):
                raise DataError(
                    f"{self.where}: '{shortened(layer.name)}' {'lacks' if part in wanted else 'should not have'} {told}"
                )
            if part in wanted:
                place = layer.factors[part]
                self._require(self.where, place, self.file.shapes[place], wanted[part])

    @staticmethod
    def _require(where: Path, name: str, found: tuple[int, ...], wanted: tuple[int, ...]) -> None:
        if found != wanted:
            raise DataError(f"{where}: '{shortened(name)}' has the shape {found}, but {wanted} would fit")
