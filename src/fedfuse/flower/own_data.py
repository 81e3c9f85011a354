"""A party's own examples: a file in a format of docs/data.md, or what a function on the party's machine gives.

Wherever they come from, they become examples of the experiment's kind here, or one sentence says by file and row why
they cannot. A node says by its node config what they are:

    data      a .csv, .parquet or .npz file, a folder of such files or of images, or a .yaml file that says more of it
    loader    module:function, called without arguments, as data: {name: python} of an experiment
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from pyarrow import csv
from pydantic import Field

from fedfuse.core.errors import ConfigError, DataError, unknown
from fedfuse.core.part import Settings
from fedfuse.data import Dataset, DataSettings, Examples
from fedfuse.data.callable import read_callable
from fedfuse.data.given.arrays import as_array
from fedfuse.data.own_files import read_own_files
from fedfuse.data.readers import Contents, Reading
from fedfuse.data.readers.contents import Array, check_range, describe
from fedfuse.data.readers.npz import contents_of_arrays
from fedfuse.data.readers.table import LABEL_COLUMNS
from fedfuse.experiment.config import checked, read_yaml

TABLES = ("csv", "parquet")
FILES = (*TABLES, "npz")
YAML = (".yaml", ".yml")


class OwnFile(Settings):
    """What a party says of its file. The keys mean what they mean in the section ``data`` of an experiment."""

    name: Literal["csv", "parquet", "npz", "images"]
    path: str = Field(description="the file or folder; where it does not begin with /, beside the YAML file")
    input_column: str | None = None
    label_column: str | None = None
    ignore_columns: tuple[str, ...] = ()
    labels: dict[str, int | str] = Field(
        {}, description="which class of the experiment each label of the file is, where they are called otherwise"
    )


NO_FILE = OwnFile(name="npz", path="")
"""Says nothing about examples that come from a function."""


@dataclass(frozen=True)
class OwnData:
    """Makes a party's data examples of the kind that the experiment has in its ``dataset``."""

    dataset: Dataset
    settings: DataSettings

    def of_node(self, node_config: Mapping[str, Any]) -> Examples | None:
        """What the node config names; None if it names nothing."""
        data, loader = node_config.get("data"), node_config.get("loader")
        if data is not None and loader is not None:
            raise ConfigError("this node names data and a loader; keep one of them")
        if loader is not None:
            return self._of_function(str(loader))
        return None if data is None else self._of_file(_described(Path(str(data)).expanduser()))

    def of_arrays(self, inputs: Any, labels: Any, where: str) -> Examples:
        """Inputs and labels in memory."""
        arrays = {"x": as_array(inputs, f"{where}, inputs"), "y": as_array(labels, f"{where}, labels")}
        reading = self._reading(NO_FILE)
        return self._examples(contents_of_arrays(arrays, where, reading)[0], reading, where)

    def _of_function(self, address: str) -> Examples:
        reading = self._reading(NO_FILE)
        return self._examples(read_callable(address, reading, "loader").train, reading, address)

    def _of_file(self, file: OwnFile) -> Examples:
        path = _existing(Path(file.path))
        reading = self._reading(file, _header(path, file.name) if file.name in TABLES else ())
        return self._examples(read_own_files(file.name, path, None, False, reading).train, reading, path.name)

    def _reading(self, file: OwnFile, header: tuple[str, ...] = ()) -> Reading:
        """As the experiment's own data is read, but for what the party says itself."""
        settings, label = self.settings, file.label_column or self.settings.label_column
        return Reading(
            input_column=file.input_column or settings.input_column,
            label_column=label,
            resize=settings.resize,
            channels=settings.channels or (self.dataset.shape[0] if self.dataset.train.kind == "images" else None),
            tokenizer=self.dataset.tokenizer,
            ignored=tuple(dict.fromkeys((*file.ignore_columns, *self._unknown_columns(header, label)))),
            words=self._words(file.labels),
        )

    def _unknown_columns(self, header: tuple[str, ...], label: str | None) -> tuple[str, ...]:
        """Those of a party's table that are neither inputs of the experiment nor the label."""
        inputs = self._columns
        if not set(inputs) & set(header):
            others = (*self.settings.ignore_columns, self.settings.client_column)
            return tuple(name for name in header if name in others)
        usual = (name for name in LABEL_COLUMNS if name in header and name not in inputs)
        kept = (*inputs, label or next(usual, None))
        return tuple(name for name in header if name not in kept)

    @property
    def _columns(self) -> tuple[str, ...]:
        return self.dataset.columns.inputs if self.dataset.columns else ()

    def _words(self, labels: Mapping[str, int | str]) -> tuple[tuple[str, int], ...]:
        """The names of classes and their numbers, or what the party calls them."""
        names = {name: number for number, name in enumerate(self.dataset.class_names)}
        if not labels:
            return tuple(names.items())
        meant = {word: names.get(str(value), value) for word, value in labels.items()}
        for word, number in meant.items():
            if number not in range(len(names)):
                raise ConfigError(f"labels: '{word}' stands for {unknown('class', str(number), names)}")
        return tuple((word, int(number)) for word, number in meant.items())

    def _examples(self, contents: Contents, reading: Reading, where: str) -> Examples:
        inputs, expected = self._in_order(contents, where), self.dataset.train.inputs[:0].numpy()
        if (inputs.dtype, inputs.shape[1:]) != (expected.dtype, expected.shape[1:]):
            raise DataError(f"{where} holds inputs of {describe(inputs)}; the experiment's have {describe(expected)}")
        labels = _by_name(contents, dict(reading.words), where)
        check_range(labels, self.dataset.classes, where)
        return Examples(torch.from_numpy(inputs), torch.from_numpy(labels))

    def _in_order(self, contents: Contents, where: str) -> Array:
        """Columns of a table in the experiment's order, because a network knows them by their places."""
        there, wanted = contents.columns.inputs if contents.columns else (), self._columns
        if not set(there) & set(wanted) or there == wanted:
            return contents.inputs
        for name in wanted:
            if name not in there:
                raise DataError(f"{where} has no column of numbers '{name}', which is an input of the experiment")
        return np.ascontiguousarray(contents.inputs[:, [there.index(name) for name in wanted]])


def _by_name(contents: Contents, words: Mapping[str, int], where: str) -> Array:
    """Labels as the experiment numbers them, where the data has names for its own."""
    if contents.class_names is None:
        return contents.labels
    for name in contents.class_names:
        if name not in words:
            raise DataError(f"{where}: {unknown('class', name, words)}")
    return np.array([words[name] for name in contents.class_names], np.int64)[contents.labels]


def _described(path: Path) -> OwnFile:
    """What there is to know of a file, from its name or from the YAML file that describes it."""
    if _existing(path).suffix not in YAML:
        return OwnFile(name=_format(path), path=str(path))
    file = checked(OwnFile, read_yaml(path), str(path))
    return file.model_copy(update={"path": str(path.parent / Path(file.path).expanduser())})


def _existing(path: Path) -> Path:
    """A regular file or a folder: a pipe may never end."""
    try:
        there = path.is_file() or path.is_dir()
    except OSError:  # a name that is longer than any file's
        there = False
    if not there:
        raise DataError(f"{path} does not exist; name the file or folder of this party's examples")
    return path


def _format(path: Path) -> Any:
    if path.is_dir():
        kinds = {entry.suffix.removeprefix(".") for entry in path.iterdir()} & set(FILES)
        return kinds.pop() if len(kinds) == 1 else "images"
    kind = path.suffix.removeprefix(".").lower()
    if kind not in FILES:
        raise ConfigError(
            f"{path}: own data is a .csv, .parquet or .npz file or a folder of images; for anything else write a "
            "function and give --loader module:function"
        )
    return kind


def _header(path: Path, kind: str) -> tuple[str, ...]:
    """The columns of a table, or of the first of several; nothing where the reader will say what is wrong."""
    file = path if path.is_file() else min(path.glob(f"*.{kind}"), default=path)
    if not file.is_file():
        return ()
    try:
        schema = csv.open_csv(file).schema if kind == "csv" else pq.read_schema(file)
    except (OSError, pa.ArrowException):
        return ()
    return tuple(schema.names)
