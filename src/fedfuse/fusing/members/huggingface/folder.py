"""What lies in a folder of transformers, looked at without running or allocating anything that its files describe."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fedfuse.core.errors import DataError, shortened
from fedfuse.data.dataset import InputKind
from fedfuse.data.readers.bounds import beside, check_is_file
from fedfuse.fusing.members.files import read_json
from fedfuse.fusing.members.pickled import read_pickled
from fedfuse.fusing.members.tensors import FileTensors, common_dtype

CONFIG, PROCESSOR, TOKENIZER = "config.json", "preprocessor_config.json", "tokenizer_config.json"
LONGEST_CONFIG = 5_000_000
"""Bytes; the longest honest ones name 20,000 classes."""
MOST = 1_000_000
"""Layers, classes and the like."""
TASKS: dict[str, InputKind] = {"ForImageClassification": "images", "ForSequenceClassification": "texts"}
REPEATED = re.compile(r"layers|depth|blocks|stages|num_labels")
"""Numbers of a config that say how often something is made."""
NOT_TAKEN = re.compile(r"_?attn_implementation.*|_?experts_implementation.*|auto_map|(torch_)?dtype|_name_or_path")
"""Keys of a config that are not the network's: how to compute, what code to fetch, where it once lay."""
OTHERS = {
    "tf_model.h5": "TensorFlow",
    "flax_model.msgpack": "Flax",
    "model.ckpt.index": "TensorFlow",
    "rust_model.ot": "Rust",
}
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "spiece.model", "tokenizer.model")


@dataclass(frozen=True)
class Folder:
    """Its config and its files, found sound."""

    path: Path
    config: dict[str, Any]

    @staticmethod
    def open(path: Path) -> Folder:
        config = read_json(path / CONFIG, LONGEST_CONFIG)
        if "quantization_config" in config:
            raise DataError(f"{path} holds quantised weights; give the model before it was quantised")
        for key, number in _numbers(config):
            if REPEATED.search(key) and number > MOST:
                raise DataError(f"{path / CONFIG}: {shortened(key)} is {number}, which no network has")
        return Folder(path, config)

    @property
    def class_name(self) -> str:
        """Of the network."""
        named = self.config.get("architectures")
        name = named[0] if isinstance(named, list) and named else None
        if not isinstance(name, str) or not isinstance(self.config.get("model_type"), str):
            raise DataError(f"{self.path / CONFIG} does not name its network (architectures, model_type)")
        return name

    @property
    def task(self) -> InputKind | None:
        """What a classifier reads; None if the network is no classifier."""
        return next((kind for part, kind in TASKS.items() if part in self.class_name), None)

    @property
    def clean_config(self) -> dict[str, Any]:
        """The config without what is not the network's."""
        return {key: value for key, value in self.config.items() if not NOT_TAKEN.fullmatch(key)}

    @cached_property
    def class_names(self) -> tuple[str, ...]:
        """In the order of their numbers; placeholders too."""
        labels = self.config.get("id2label")
        if labels is None:
            count = self.config.get("num_labels", 2)  # what transformers takes
            if not isinstance(count, int) or not 1 <= count <= MOST:
                raise DataError(f"{self.path / CONFIG}: num_labels is no number of classes")
            return tuple(f"LABEL_{number}" for number in range(count))
        try:
            numbered = {int(number): str(label) for number, label in labels.items()}
        except (AttributeError, TypeError, ValueError):
            raise DataError(f"{self.path / CONFIG}: id2label is no mapping from numbers to names") from None
        if sorted(numbered) != list(range(len(numbered))) or not numbered:
            raise DataError(f"{self.path / CONFIG}: id2label does not number its classes from 0 on")
        return tuple(numbered[number] for number in range(len(numbered)))

    @cached_property
    def weight_files(self) -> tuple[Path, ...]:
        """All that hold weights, in safetensors where there is a choice; none in a folder with a config alone."""
        for stem, suffix in (("model", "safetensors"), ("pytorch_model", "bin")):
            index = self.path / f"{stem}.{suffix}.index.json"
            single = self.path / f"{stem}.{suffix}"
            if single.exists() or single.is_symlink():
                check_is_file(single)
                return (single,)
            if index.exists():
                return self._shards(index)
        for name, package in OTHERS.items():
            if (self.path / name).exists():
                raise DataError(f"{self.path} holds weights of {package}; save them from torch as safetensors")
        return ()

    @property
    def tensors(self) -> Mapping[str, Tensor]:
        """By their names in the files; pickled ones are read whole each time, and not kept."""
        files = self.weight_files
        if not files:
            raise DataError(f"{self.path} holds no weights (model.safetensors); fetch them")
        if files[0].suffix == ".safetensors":
            return FileTensors(files)
        every: dict[str, Tensor] = {}
        for path in files:
            every.update(read_pickled(path))
        return every

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the tensors, by their names in the files."""
        return self._shapes_and_dtypes[0]

    @property
    def dtype(self) -> str:
        """Of most weights."""
        shapes, dtypes = self._shapes_and_dtypes
        return common_dtype(dtypes, shapes)

    @cached_property
    def _shapes_and_dtypes(self) -> tuple[dict[str, tuple[int, ...]], dict[str, torch.dtype]]:
        tensors = self.tensors
        if isinstance(tensors, FileTensors):
            return tensors.shapes, tensors.dtypes
        shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        return shapes, {name: tensor.dtype for name, tensor in tensors.items()}

    @property
    def deciding_files(self) -> list[Path]:
        """All that what the model says depends on."""
        beside_weights = [self.path / name for name in (CONFIG, PROCESSOR, TOKENIZER, *TOKENIZER_FILES)]
        return [*self.weight_files, *(path for path in beside_weights if path.is_file())]

    def _shards(self, index: Path) -> tuple[Path, ...]:
        """The files that an index names, all of which must lie beside it."""
        places = read_json(index).get("weight_map")
        if not isinstance(places, dict) or not places or not all(isinstance(one, str) for one in places.values()):
            raise DataError(f"{index} does not say where the weights lie; fetch it again")
        files = tuple(beside(self.path, name, str(index)) for name in sorted(set(places.values())))
        for file in files:
            if not os.path.exists(file):  # noqa: PTH110 - a name that is too long for a file is that of none
                raise DataError(f"{self.path} lacks {shortened(file.name)}, which {index.name} names; fetch it")
            check_is_file(file)
            if file.suffix != index.name.removesuffix(".index.json")[index.name.index(".") :]:
                raise DataError(f"{index} names {file.name}, which is of another format")
        return files


def _numbers(value: Any, key: str = "", depth: int = 0) -> Iterator[tuple[str, int]]:
    """All whole numbers of a config by the last key above them."""
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield key, value
    elif isinstance(value, Mapping) and depth < 20:
        for name, inner in value.items():
            yield from _numbers(inner, str(name), depth + 1)
    elif isinstance(value, list) and depth < 20:
        for inner in value:
            yield from _numbers(inner, key, depth + 1)


def float32(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """All in memory, in the precision that is computed in."""
    return {
        name: tensor.to(torch.float32) if tensor.is_floating_point() else tensor for name, tensor in tensors.items()
    }
