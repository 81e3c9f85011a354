"""Students of transformers: begun with a folder's weights or as its config says, and written as such a folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import Tensor, nn

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.files import write_text
from fedfuse.core.plain_json import dumps
from fedfuse.core.randomness import Key
from fedfuse.data.dataset import InputKind
from fedfuse.fusing.members.asking import check_kind
from fedfuse.fusing.members.base import Blueprint
from fedfuse.fusing.members.class_names import telling
from fedfuse.fusing.members.files import read_json
from fedfuse.fusing.members.huggingface.folder import PROCESSOR, TASKS, Folder, float32
from fedfuse.fusing.members.huggingface.network import (
    Answering,
    class_of,
    config_of,
    described,
    filled,
    fresh,
    head_of,
    names_in_files,
    transformers_for,
)
from fedfuse.fusing.members.huggingface.pixels import LARGEST, Pixels, pixels_of, plain
from fedfuse.fusing.members.huggingface.tokens import Tokens, tokens_of
from fedfuse.fusing.members.inputs import Normalise, normalisation_of
from fedfuse.fusing.raw import Raw
from fedfuse.models.export.quiet import quietly

NO_PROCESSOR = (
    "it has no preprocessor_config.json, so pixels from 0 to 1 go in as (x - 0.5) / 0.5; say normalise= where it was "
    "trained otherwise"
)
ANY_SIZE = frozenset(
    {"bit", "convnext", "convnextv2", "efficientnet", "mobilenet_v1", "mobilenet_v2", "poolformer", "regnet", "resnet"}
)
"""Types of networks that take images as they are, whatever ``image_size`` their config names."""


@dataclass(frozen=True, eq=False)
class HuggingFaceBlueprint(Blueprint):
    """The network that a folder describes."""

    folder: Folder
    reads: InputKind
    normalise: Normalise | None = None
    begins_with_weights: bool = False
    """Whether new networks hold the folder's weights; its last layer's only if ``keeps_head``."""
    keeps_head: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.class_name

    @property
    def shape(self) -> tuple[int, ...] | None:  # type: ignore[override]
        return (self.tokens.longest,) if self.reads == "texts" else self.pixels.shape

    @cached_property
    def class_name(self) -> str:
        """Of the classifier; that of the same family where the folder holds another kind of network."""
        if self.folder.task is not None:
            return self.folder.class_name
        ending = next(part for part, kind in TASKS.items() if kind == self.reads)
        transformers = transformers_for(str(self.folder.path))
        auto = getattr(transformers, f"AutoModel{ending}")
        config = config_of(self.folder)
        if type(config) not in auto._model_mapping:
            raise ConfigError(f"{self.folder.path}: transformers has no classifier of {self.reads} of this type")
        found = auto._model_mapping[type(config)]
        name: str = (found[0] if isinstance(found, tuple) else found).__name__
        return name

    @cached_property
    def pixels(self) -> Pixels:
        """How images are prepared."""
        channels = _whole(self.folder.config.get("num_channels", 3), self.folder)
        place = self.folder.path / PROCESSOR
        if place.exists() and self.normalise is None:
            return pixels_of(read_json(place), channels, place)
        constants = normalisation_of(self.normalise or "half", channels, self.name)
        if place.exists():
            found = pixels_of({**read_json(place), "do_normalize": False, "include_top": False}, channels, place)
            return replace(found, constants=(constants,), factor=1 / 255, offset=0.0)
        return plain(channels, _side(self.folder.config), constants)

    @cached_property
    def tokens(self) -> Tokens:
        """How texts are."""
        return tokens_of(self.folder)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is taken for granted."""
        silent = self.reads == "images" and self.normalise is None and not (self.folder.path / PROCESSOR).exists()
        return (NO_PROCESSOR,) if silent else ()

    def build(self, classes: int, key: Key) -> Answering:
        cls, config, where = class_of(self.folder, self.class_name), self.config(classes), str(self.folder.path)
        with key.default_generator():
            if not self.begins_with_weights:
                return Answering(fresh(cls, config, where).train())
            described(self.folder, cls, config_of(self.folder))
            head = frozenset() if self.keeps_head else head_of(cls, config, where)
            weights = {name: tensor for name, tensor in float32(self.folder.tensors).items() if name not in head}
            return Answering(filled(cls, config, weights, where, self._may_be_new(cls, head)).train())

    def prepare(self, raw: Raw) -> Any:
        check_kind(raw, self.reads, self.name)
        return self.pixels(raw, self.name) if isinstance(raw, Tensor) else self.tokens(raw)

    def load(self, network: nn.Module, weights: Mapping[str, Tensor]) -> None:
        inner = _inner(network)
        try:
            other = filled(type(inner), inner.config, float32(weights), self.name)
        except DataError as error:
            raise ConfigError(str(error)) from None
        inner.load_state_dict(other.state_dict())

    def weights_of(self, network: nn.Module) -> dict[str, Tensor]:
        return names_in_files(_inner(network))

    def write(
        self, folder: Path, network: nn.Module, class_names: Sequence[str], facts: Mapping[str, Any]
    ) -> list[Path]:
        inner = _inner(network)
        inner.config.id2label = dict(enumerate(class_names))
        inner.config.label2id = {name: number for number, name in enumerate(class_names)}
        with quietly(), TemporaryDirectory(dir=folder) as place:
            inner.save_pretrained(place)
            self.write_preparation(Path(place))
            return [file.replace(folder / file.name) for file in sorted(Path(place).iterdir())]

    def write_preparation(self, folder: Path) -> None:
        """The tokenizer, or how images are prepared."""
        if self.reads == "texts":
            self.tokens.write(folder)
        else:
            self._write_processor(folder)

    def config(self, classes: int) -> Any:
        """For so many classes."""
        config = config_of(self.folder)
        config.num_labels = classes
        if self.reads == "texts" and config.pad_token_id is None:
            config.pad_token_id = self.tokens.inner.pad_token_id
        return config

    def _may_be_new(self, cls: Any, head: frozenset[str]) -> Callable[[str], bool]:
        """Whether a weight need not lie in the folder: the last layer's; all above the encoder where it has no more."""
        if self.folder.task is not None:
            return head.__contains__
        below = f"{cls.base_model_prefix}."
        return lambda name: not name.startswith(below) or "pooler" in name

    def _write_processor(self, folder: Path) -> None:
        """The folder's own file where it was followed, or else one that says what was done."""
        own = self.folder.path / PROCESSOR
        if own.exists() and self.normalise is None:
            shutil.copyfile(own, folder / PROCESSOR)
            return
        said = read_json(own) if own.exists() else {"image_processor_type": "ViTImageProcessor"}
        write_text(folder / PROCESSOR, dumps({**said, **self.pixels.in_words(own.exists())}, indent=2) + "\n")


def blueprint_of(
    folder: Folder, reads: InputKind, normalise: Normalise | None, class_names: Sequence[str], from_config: bool
) -> HuggingFaceBlueprint:
    """A student that begins with a folder's weights, or as its config says where it has none or is not to."""
    weights = bool(folder.weight_files) and not from_config
    if folder.task not in (None, reads):
        raise ConfigError(f"{folder.path} reads {folder.task}, and the inputs are {reads}")
    same = folder.task is not None and telling(folder.class_names) == tuple(class_names)
    return HuggingFaceBlueprint(folder, reads, normalise, weights, keeps_head=weights and same)


def _inner(network: nn.Module) -> Any:
    assert isinstance(network, Answering), "it was built here"
    return network.inner


def _side(config: Mapping[str, Any]) -> tuple[int, int] | None:
    """The height and width that a network was made for; None where it takes any."""
    size = config.get("image_size")
    sides = size if isinstance(size, list) else [size, size]
    known = [side for side in sides if isinstance(side, int) and 1 <= side <= LARGEST]
    return (known[0], known[1]) if len(known) == 2 and config.get("model_type") not in ANY_SIZE else None


def _whole(value: Any, folder: Folder) -> int:
    if type(value) is not int or not 1 <= value <= 16:
        raise DataError(f"{folder.path}: config.json has no sensible num_channels")
    return value
