"""What members are asked about and the student learns from: files, a dataset's name, another source, or Python's data.

Images are read with at most as many pixels as any model looks at, so that a folder of large ones fits into memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from fedfuse.catalogue.card import Normalisation
from fedfuse.catalogue.datasets import CATALOGUE
from fedfuse.core.errors import ConfigError, DataError, shortened, unknown
from fedfuse.core.hashes import sha256_of
from fedfuse.core.part import first_mistake
from fedfuse.core.paths import expanded
from fedfuse.core.randomness import Key
from fedfuse.data import Dataset, DataSettings, Examples, Transform, load
from fedfuse.data.dataset import InputKind
from fedfuse.data.own_files import read_own_files
from fedfuse.data.raw.base import array_of
from fedfuse.data.readers import Reading
from fedfuse.data.readers.bounds import check_fits
from fedfuse.data.readers.folder import all_images
from fedfuse.data.readers.images import image_size
from fedfuse.data.tokens import EMPTY, FIRST, Bytes
from fedfuse.data.unlabelled import read_unlabelled
from fedfuse.fusing.classes import spellings
from fedfuse.fusing.raw import Raw, kind_of_raw, rows_of
from fedfuse.parts.sources import AnySource, SourceSettings
from fedfuse.parts.sources.base import Surroundings
from fedfuse.runtime.compute import Compute

LONGEST_TEXT = 2048
"""Bytes of a text in a table that are kept; lines of a file are kept whole."""
NOISE = ("uniform_noise", "gaussian_noise")
FORMATS = {".parquet": "parquet", ".csv": "csv", ".npz": "npz"}


@dataclass(frozen=True)
class Demand:
    """What the models of a fusion read: it decides how large images are, and what a source without files makes."""

    reads: InputKind
    shape: tuple[int, ...] | None
    """Of the one that sees most."""


@dataclass(frozen=True)
class FuseInputs:
    """Inputs of which nobody knows the labels, or at least nobody asks."""

    name: str
    raw: Raw

    def __len__(self) -> int:
        return len(self.raw)

    @cached_property
    def sha256(self) -> str:
        """Of all of them, in their order."""
        return sha256_of_raw(self.raw)

    @property
    def kind(self) -> InputKind:
        return kind_of_raw(self.raw)

    def part(self, limit: int | None, key: Key) -> FuseInputs:
        """At most so many, drawn at random, in their order."""
        if limit is None or limit >= len(self):
            return self
        chosen = torch.randperm(len(self), generator=key.torch())[:limit].sort().values
        return FuseInputs(self.name, rows_of(self.raw, chosen))


@dataclass(frozen=True)
class Labelled:
    """Examples to measure on: labels are numbers of ``class_names``, or of the common classes where there are none."""

    name: str
    raw: Raw
    labels: Tensor
    class_names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.labels)


def find_inputs(what: Any, demand: Demand, key: Key, input_column: str | None = None) -> FuseInputs:
    """The inputs that are meant; a ConfigError or DataError says what is wrong with them."""
    if isinstance(what, SourceSettings | Mapping) or (isinstance(what, str) and what in NOISE):
        found = _from_source(what, demand, key)
    elif isinstance(what, str | Path):
        found = _from_place(str(what), demand, input_column)
    else:
        found = FuseInputs("inputs from Python", raw_of(what, "inputs"))
    _check_kind(found.raw, demand, found.name)
    if len(found) < 2:
        raise DataError(f"{found.name} has {len(found)} input(s); a student needs at least 2 to learn from")
    return found


def find_examples(
    what: Any, demand: Demand, input_column: str | None = None, label_column: str | None = None
) -> Labelled:
    """Labelled examples: a folder with a subfolder per class, a table, a dataset's name, or (inputs, labels)."""
    if isinstance(what, tuple) and len(what) == 2:
        raw, labels = raw_of(what[0], "examples"), array_of(what[1])
        found = _labelled("examples from Python", raw, labels)
    else:
        found = _examples_at(str(what), demand, input_column, label_column)
    _check_kind(found.raw, demand, found.name)
    return found


def is_table(what: Any) -> bool:
    """Whether it is a file with columns."""
    return isinstance(what, str | Path) and Path(what).suffix in FORMATS


def label_inputs(inputs: FuseInputs, what: Any) -> Labelled:
    """The inputs themselves as labelled examples: a file with a label per line, or a sequence of labels."""
    if isinstance(what, str | Path):
        path = expanded(str(what), "labels")
        if not path.is_file():
            raise DataError(f"labels: {path} is not a file; give one label per line, in the order of the inputs")
        check_fits(path.stat().st_size, path.name)
        what = path.read_text(encoding="utf-8", errors="replace").split()
    return _labelled(inputs.name, inputs.raw, array_of(what))


def numbers_of(examples: Labelled, names: Sequence[str]) -> Tensor:
    """The labels as numbers of these classes."""
    if examples.class_names is not None and not all(name.isdecimal() for name in examples.class_names):
        ours = spellings([names, examples.class_names])
        places = {name: place for place, name in enumerate(names)}
        for name in examples.class_names:
            if ours[name] not in places:
                raise DataError(f"{examples.name}: no model knows the {unknown('class', name, names)}")
        return torch.tensor([places[ours[name]] for name in examples.class_names])[examples.labels]
    if len(examples) and not 0 <= int(examples.labels.min()) <= int(examples.labels.max()) < len(names):
        raise DataError(f"{examples.name}: there are labels that are no numbers of the {len(names)} classes, from 0")
    return examples.labels


def raw_of(what: Any, where: str) -> Raw:
    """Arrays, tensors and lists as raw inputs."""
    if isinstance(what, str):
        raise DataError(f"{where}: '{shortened(what)}' is one text; give a list of them")
    if isinstance(what, Sequence) and len(what) and all(isinstance(text, str) for text in what):
        return list(what)
    array = array_of(what)
    if array.ndim == 1 and array.dtype.kind in "UO":
        return [str(text) for text in array.tolist()]
    if array.dtype == np.uint8 and array.ndim in (3, 4):
        return _images(torch.from_numpy(np.ascontiguousarray(array)))
    if array.dtype.kind in "fiu" and array.ndim == 2:
        numbers = torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
        if not bool(numbers.isfinite().all()):
            raise DataError(f"{where}: there are numbers that are not finite; remove or replace them")
        return numbers
    raise DataError(
        f"{where}: an array of {array.dtype} with shape {array.shape} cannot be read; give images as uint8 "
        "N x C x H x W, numbers as N x D, or a list of texts"
    )


def sha256_of_raw(raw: Raw) -> str:
    """Recognises inputs."""
    if isinstance(raw, Tensor):
        return sha256_of(raw.contiguous().view(-1))
    return hashlib.sha256("\0".join(raw).encode("utf-8", "surrogatepass")).hexdigest()


def _images(pixels: Tensor) -> Tensor:
    if pixels.ndim == 3:
        return pixels[:, None]
    return pixels if pixels.shape[1] in (1, 3) else pixels.permute(0, 3, 1, 2).contiguous()


def _from_place(name: str, demand: Demand, input_column: str | None) -> FuseInputs:
    path = expanded(name, "data")
    if not path.exists():
        if name in CATALOGUE:
            return FuseInputs(name, _raw_of_array(_known(name).train.inputs.numpy()))
        raise DataError(f"data: {unknown('file, folder or dataset', name, CATALOGUE)}")
    if path.suffix == ".txt" and path.is_file():
        check_fits(path.stat().st_size, path.name)
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        return FuseInputs(path.name, [line for line in lines if line.strip()])
    reading = _reading(path, demand, input_column, labelled=False)
    try:
        return FuseInputs(path.name, _raw_of_array(read_unlabelled(path, reading)))
    except DataError as error:
        raise DataError(_renamed(error)) from error


def _examples_at(name: str, demand: Demand, input_column: str | None, label_column: str | None) -> Labelled:
    path = expanded(name, "examples")
    if not path.exists():
        if name not in CATALOGUE:
            raise DataError(f"examples: {unknown('file, folder or dataset', name, CATALOGUE)}")
        dataset = _known(name)
        examples = dataset.test or dataset.train
        return Labelled(name, _raw_of_array(examples.inputs.numpy()), examples.labels, dataset.class_names)
    kind = "images" if path.is_dir() else FORMATS.get(path.suffix)
    if kind is None:
        raise DataError(f"examples: {path} is neither a folder of images nor a .parquet, .csv or .npz file")
    reading = _reading(path, demand, input_column, labelled=True, label_column=label_column)
    try:
        found = read_own_files(kind, path, None, False, reading)
    except DataError as error:
        raise DataError(_renamed(error)) from error
    contents = found.test or found.train
    if not contents.is_labelled:
        raise DataError(f"examples: {name} has no labels")
    labels = torch.from_numpy(contents.labels)
    return Labelled(name, _raw_of_array(contents.inputs), labels, contents.class_names)


def _known(name: str) -> Dataset:
    """A dataset of the catalogue."""
    card = CATALOGUE[name]
    tokenizer = Bytes(LONGEST_TEXT, lower=False) if card.is_text else None
    return load(DataSettings(name=name), Key(0).child("load"), tokenizer)


def _reading(
    path: Path, demand: Demand, input_column: str | None, labelled: bool, label_column: str | None = None
) -> Reading:
    resize = channels = None
    if path.is_dir() and demand.reads == "images":
        resize, channels = _size_of_images(all_images(path), demand.shape)
    tokenizer = Bytes(LONGEST_TEXT, lower=False) if demand.reads == "texts" else None
    return Reading(input_column, label_column, resize=resize, channels=channels, labelled=labelled, tokenizer=tokenizer)


def _size_of_images(files: Sequence[Path], shape: tuple[int, ...] | None) -> tuple[int | None, int | None]:
    """The side to which images are brought, and their channels; None where they can stay as they are."""
    sizes = {image_size(file) for file in files}
    most = max(shape[1:]) if shape is not None and len(shape) == 3 else 224
    width, height, _ = max(sizes)
    alike = len({size[:2] for size in sizes}) == 1
    resize = None if alike and max(width, height) <= most else min(most, max(max(size[:2]) for size in sizes))
    return resize, None if len({size[2] for size in sizes}) == 1 else 3


def _from_source(what: Any, demand: Demand, key: Key) -> FuseInputs:
    """Inputs that somebody makes: noise, a generator, another dataset."""
    value = {"kind": what} if isinstance(what, str) else what
    try:
        settings: SourceSettings = TypeAdapter(AnySource).validate_python(value)
    except ValidationError as error:
        raise ConfigError(first_mistake(error, "data", skip=1)) from None
    if demand.shape is None or demand.reads == "texts":
        raise ConfigError(f"data: a source of kind {settings.kind} makes inputs of a known size only; give files")
    empty = torch.empty(0, *demand.shape, dtype=torch.uint8 if demand.reads == "images" else torch.float32)
    nobody = Examples(empty, torch.empty(0, dtype=torch.int64))
    plain = Transform(Normalisation.uniform("none", demand.shape[0]), demand.shape)
    compute = Compute(torch.device("cpu"), threads=1, channels_last=False)
    source = settings.open(Surroundings(nobody, nobody, plain, compute, key.child("source"), classes=1))
    return FuseInputs(source.name, source.raw)


def _labelled(name: str, raw: Raw, labels: np.ndarray[Any, Any]) -> Labelled:
    if labels.ndim != 1 or len(labels) != len(raw):
        raise DataError(f"{name}: there are {len(raw)} inputs and {labels.shape} labels; each input needs one")
    if labels.dtype.kind in "iu":
        return Labelled(name, raw, torch.from_numpy(labels.astype(np.int64)))
    words = labels.astype(np.str_)
    if all(word.isdecimal() for word in words.tolist()):
        return Labelled(name, raw, torch.from_numpy(words.astype(np.int64)))
    names, places = np.unique(words, return_inverse=True)
    return Labelled(name, raw, torch.from_numpy(places.astype(np.int64)), tuple(map(str, names)))


def _raw_of_array(inputs: np.ndarray[Any, Any]) -> Raw:
    if inputs.dtype == np.int32:
        return [_text(row) for row in inputs]
    return torch.from_numpy(inputs)


def _text(row: np.ndarray[Any, Any]) -> str:
    """The way back from the numbers of bytes; a character that was cut off at the end is left out."""
    kept = row[row >= FIRST] if EMPTY not in row[:1] else row[:0]
    return (kept - FIRST).astype(np.uint8).tobytes().decode("utf-8", "ignore")


def _check_kind(raw: Raw, demand: Demand, name: str) -> None:
    if kind_of_raw(raw) != demand.reads:
        raise DataError(f"{name} holds {kind_of_raw(raw)}, but the models read {demand.reads}")


def _renamed(error: DataError) -> str:
    """The readers name keys of an experiment file."""
    return str(error).replace("data.path", "data").replace("data.input_column", "--input-column")
