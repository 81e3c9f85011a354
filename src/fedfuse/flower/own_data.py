"""A party's own examples: a file in a format of docs/data.md, or what a function on the party's machine gives.

Wherever they come from, they become examples of the experiment's kind here, or one sentence says by file and row why
they cannot. Classes, categories and what fills empty cells are the experiment's, whatever the party's own table holds.
A node says by its node config what its examples are:

    data      a .csv, .parquet, .jsonl or .npz file, a folder of such files or of images, or a .yaml file that says more
    loader    module:function, called without arguments, as data: {name: python} of an experiment
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field

from fedfuse.core.errors import ConfigError, DataError, unknown
from fedfuse.core.part import Settings
from fedfuse.data import Dataset, DataSettings, Examples
from fedfuse.data.callable import read_callable
from fedfuse.data.given.arrays import as_array
from fedfuse.data.own_files import TABLES, read_own_files
from fedfuse.data.readers import Contents, Reading
from fedfuse.data.readers.contents import Array, Dialect, describe
from fedfuse.data.readers.encoding import Encoding
from fedfuse.data.readers.labels import Classes, Words, check_range
from fedfuse.data.readers.npz import contents_of_arrays
from fedfuse.data.table_settings import ColumnName, Decimal, Separator, TextEncoding
from fedfuse.experiment.config import checked, read_yaml

FILES = (*TABLES, "npz")
YAML = (".yaml", ".yml")


class OwnFile(Settings):
    """What a party says of its file. The keys mean what they mean in the section ``data`` of an experiment."""

    name: Literal["csv", "parquet", "jsonl", "npz", "images"]
    path: str = Field(description="the file or folder; where it does not begin with /, beside the YAML file")
    input_column: ColumnName | None = None
    label_column: ColumnName | None = None
    ignore_columns: tuple[ColumnName, ...] = ()
    labels: dict[str, int | str] = Field(
        {}, description="which class of the experiment each label of the file is, where they are called otherwise"
    )
    empty_values: tuple[str, ...] = ()
    separator: Separator | None = None
    decimal: Decimal | None = None
    encoding: TextEncoding | None = None
    header: bool = True


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
        return self._examples(contents_of_arrays(arrays, where, self._reading(NO_FILE))[0], where)

    def _of_function(self, address: str) -> Examples:
        return self._examples(read_callable(address, self._reading(NO_FILE), "loader").train, address)

    def _of_file(self, file: OwnFile) -> Examples:
        path = _existing(Path(file.path))
        return self._examples(read_own_files(file.name, path, None, False, self._reading(file)).train, path.name)

    def _reading(self, file: OwnFile) -> Reading:
        """As the experiment's own data is read, but for what the party says itself."""
        settings, label = self.settings, file.label_column or self.settings.label_column
        beside = (*settings.ignore_columns, settings.client_column)
        return Reading(
            input_column=file.input_column or settings.input_column,
            label_column=label,
            resize=settings.resize,
            channels=settings.channels or (self.dataset.shape[0] if self.dataset.train.kind == "images" else None),
            tokenizer=self.dataset.tokenizer,
            ignored=file.ignore_columns,
            passed_over=tuple(name for name in beside if name is not None and name != label),
            classes=Classes(self.dataset.class_names, self.dataset.label_kind, self._words(file.labels)),
            dialect=Dialect(file.separator, file.decimal, file.encoding, file.header),
            empty_values=file.empty_values,
            encoding=self._encoding(file),
        )

    def _encoding(self, file: OwnFile) -> Encoding | None:
        """The experiment's, with what else the party calls empty."""
        if self.dataset.columns is None:
            return None
        encoding = self.dataset.columns.as_encoding
        return encoding.model_copy(update={"empty_values": (*encoding.empty_values, *file.empty_values)})

    def _words(self, labels: Mapping[str, int | str]) -> Words:
        """The names of classes and their numbers, or what the party calls them."""
        names = {name: number for number, name in enumerate(self.dataset.class_names)}
        if not labels:
            return tuple(names.items())
        meant = {word: names.get(str(value), value) for word, value in labels.items()}
        for word, number in meant.items():
            if number not in range(len(names)):
                raise ConfigError(f"labels: '{word}' stands for {unknown('class', str(number), names)}")
        return tuple((word, int(number)) for word, number in meant.items())

    def _examples(self, contents: Contents, where: str) -> Examples:
        inputs, expected = contents.inputs, self.dataset.train.inputs[:0].numpy()
        if (inputs.dtype, inputs.shape[1:]) != (expected.dtype, expected.shape[1:]):
            raise DataError(f"{where} holds inputs of {describe(inputs)}; the experiment's have {describe(expected)}")
        labels = contents.labels if contents.classes is not None else self._by_name(contents, where)
        check_range(labels, self.dataset.classes, where)
        return Examples(torch.from_numpy(inputs), torch.from_numpy(labels))

    def _by_name(self, contents: Contents, where: str) -> Array:
        """Labels as the experiment numbers them, where folders have names of their own."""
        names = self.dataset.class_names
        for name in contents.class_names or ():
            if name not in names:
                raise DataError(f"{where}: {unknown('class', name, names)}")
        return np.array([names.index(name) for name in contents.class_names or ()], np.int64)[contents.labels]


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
            f"{path}: own data is a .csv, .parquet, .jsonl or .npz file or a folder of images; for anything else write "
            "a function and give --loader module:function"
        )
    return kind
