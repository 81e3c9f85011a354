"""Adapters of one base into one, through what they make of it and never through their factors.

The mean of factors is not the factor of the mean: with W_k = W + s_k B_k A_k (or what DoRA makes of it), the merge is
one of the W_k. Averages and task arithmetic of plain products stay products, W + sum_k c_k s_k B_k A_k, of a rank that
is at most the sum of theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.core.weights import shares
from fedfuse.fusing.adapters.base import Base
from fedfuse.fusing.adapters.layers import matrix_of, weight_of
from fedfuse.fusing.adapters.low_rank import Factors, of_matrix, of_products
from fedfuse.fusing.adapters.member import AdapterMember
from fedfuse.fusing.adapters.tensors import AdaptedTensors, Layer
from fedfuse.fusing.merging.file_stacks import AVERAGE, STATISTICS
from fedfuse.parts.merge import PiecewiseMerge, Soup, TaskArithmetic
from fedfuse.parts.merge.piecewise import PIECE, Stack, Stacks, Survey, keys_of


class AdapterStacks(Stacks):
    """Pieces of the tensors that any adapter changes, and that the base has."""

    def __init__(self, base: Base, models: Sequence[AdaptedTensors], names: Sequence[str], key: Key) -> None:
        self.base, self.models, self.names, self.key = base, models, names, key
        self.number = len(models)
        self.places = tuple(str(place) for place in range(len(models)))

    def of(self, name: str) -> Iterator[Stack]:
        base = self.base.tensor(name).double().flatten()
        models = [model[name].double().flatten() for model in self.models]
        for begin in range(0, len(base), PIECE):
            part = slice(begin, begin + PIECE)
            keys = keys_of(self.key, self.places, name, begin)
            yield Stack(name, base[part], tuple(model[part] for model in models), keys)


@dataclass(frozen=True)
class MergedAdapters(Mapping[str, Tensor]):
    """The merged network's weights, each computed when it is asked for."""

    models: Sequence[AdaptedTensors]
    merge: PiecewiseMerge
    key: Key

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.changed:
            return self.base.tensor(name)
        layer = self._layer(name)
        if layer is not None and self._is_product(name):
            matrix = matrix_of(self.base.tensor(name), layer.kind)
            for left, right in self._products(name):
                matrix = matrix.addmm(left, right)
            return weight_of(matrix, layer.kind, self.base.shapes[name]).to(torch.float32).contiguous()
        return self._piecewise(name).to(torch.float32)

    def __iter__(self) -> Iterator[str]:
        return iter(self.base.shapes)

    def __len__(self) -> int:
        return len(self.base.shapes)

    @property
    def base(self) -> Base:
        return self.models[0].base

    @cached_property
    def changed(self) -> frozenset[str]:
        """The names of tensors that are not the base's."""
        return frozenset[str]().union(*(model.changed for model in self.models))

    @cached_property
    def layers(self) -> list[str]:
        """The weights that have a low-rank change in some adapter and are brought whole by none."""
        whole = {name for model in self.models for name in model.saved}
        return [name for name in self.base.shapes if name not in whole and self._layer(name) is not None]

    def factors(self, name: str, rank: int) -> Factors:
        """The merged change of one of these layers, of at most this rank."""
        if self._is_product(name):
            lefts, rights = zip(*self._products(name), strict=True)
            return of_products(lefts, rights, rank)
        layer = self._layer(name)
        assert layer is not None, "it is one of the layers"
        merged, base = self._piecewise(name), self.base.tensor(name)
        return of_matrix(matrix_of(merged, layer.kind) - matrix_of(base, layer.kind), rank)

    @cached_property
    def _shares(self) -> list[float]:
        return shares(self.merge.coefficients([1] * len(self.models)))

    @cached_property
    def _steps(self) -> list[float] | None:
        """How much of each adapter's change is in the merged one; None where that is not the same for all numbers."""
        if isinstance(self.merge, Soup):
            return self._shares
        if isinstance(self.merge, TaskArithmetic):
            step = self.merge.scale * (len(self.models) if self.merge.form == "sum" else 1)
            return [step * share for share in self._shares]
        return None

    @cached_property
    def _stacks(self) -> AdapterStacks:
        names = [name for name in self.base.shapes if name in self.changed and self._counts_from_base(name)]
        return AdapterStacks(self.base, self.models, names, self.key)

    @cached_property
    def _survey(self) -> Survey:
        return self.merge.survey(self._stacks)

    def _layer(self, name: str) -> Layer | None:
        return next((model.layers[name] for model in self.models if name in model.layers), None)

    def _is_product(self, name: str) -> bool:
        return self._steps is not None and all(model.is_product(name) for model in self.models if name in model.changed)

    def _products(self, name: str) -> Iterator[tuple[Tensor, Tensor]]:
        for model, step in zip(self.models, self._steps or (), strict=True):
            if name in model.layers:
                change = model.change(name)
                yield step * change.left, change.right

    def _counts_from_base(self, name: str) -> bool:
        """Whether a tensor's changes can be told; a last layer that the base has not is averaged."""
        return self.base.has(name) and name.rpartition(".")[2] not in STATISTICS

    def _piecewise(self, name: str) -> Tensor:
        """Number by number, in double precision."""
        if self._counts_from_base(name):
            pieces = [self.merge.piece(stack, self._shares, self._survey) for stack in self._stacks.of(name)]
            return torch.cat(pieces).reshape(self.base.shapes[name])
        models = tuple(model[name].double() for model in self.models)
        return AVERAGE.piece(Stack(name, models[0], models, ()), self._shares, {})


def merged_adapters(members: Sequence[AdapterMember], merge: PiecewiseMerge, key: Key) -> MergedAdapters:
    """The merge of adapters of one base, or one sentence about why they have none."""
    first, *others = members
    for other in others:
        ours, theirs = first.adapted.base, other.adapted.base
        if other.base_sha256 != first.base_sha256 or ours.shapes.keys() != theirs.shapes.keys():
            raise ConfigError(
                f"{other.about.name} is an adapter of {theirs.folder.path}, and {first.about.name} of "
                f"{ours.folder.path}, which is another model; with data they can be distilled"
            )
        differing = [name for name, shape in ours.shapes.items() if theirs.shapes[name] != shape]
        if differing:
            raise ConfigError(
                f"{other.about.name} and {first.about.name} have different shapes of '{differing[0]}'; with data they "
                "can be distilled"
            )
    return MergedAdapters([member.adapted for member in members], merge, key)
