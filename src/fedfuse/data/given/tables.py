"""Tables with a column of labels: pandas data frames, Hugging Face datasets, Arrow tables."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import feather

from fedfuse.core.errors import DataError
from fedfuse.data.given.labels import ORIGIN, numbered
from fedfuse.data.readers import Contents, Found, Reading
from fedfuse.data.readers.contents import Array, checked_texts, unlabelled
from fedfuse.data.readers.parquet import class_names
from fedfuse.data.readers.table import (
    BATCH,
    LABEL_COLUMNS,
    TableRows,
    contents_of_rows,
    find_input_column,
    find_label_column,
    is_number,
    is_text,
    without_ignored,
)

HUGGING_FACE = b"huggingface"


@dataclass(frozen=True)
class Tables:
    """An Arrow table for each split."""

    tables: Mapping[str, Any]

    @staticmethod
    def of(splits: Mapping[str, Any]) -> Tables:
        return Tables({split: as_table(value, f"data.{split}") for split, value in splits.items()})

    @staticmethod
    def at(folder: Path) -> Tables:
        return Tables({file.stem: feather.read_table(file).combine_chunks() for file in folder.glob("*.arrow")})

    def write(self, folder: Path) -> None:
        folder.mkdir()
        for split, table in self.tables.items():
            feather.write_feather(table, folder / f"{split}.arrow", compression="uncompressed")

    def sha256(self) -> str:
        """Of the columns' names, types and values."""
        digest = hashlib.sha256()
        for split, table in sorted(self.tables.items()):
            names = (table.schema.metadata or {}).get(HUGGING_FACE, b"")
            digest.update(f"{split} {table.schema.remove_metadata()}\n".encode() + names)
            for batch in table.to_batches(BATCH):
                digest.update(batch.serialize())
        return digest.hexdigest()

    def read(self, reading: Reading) -> Found:
        kept = {split: _kept(table, reading, f"data.{split}") for split, table in self.tables.items()}
        columns = {split: _label_column(table, reading, split) for split, table in kept.items()}
        labels = {split: _labels(kept[split], name) for split, name in columns.items() if name is not None}
        numbers, words = numbered(labels)
        parts = {
            split: _contents(table, columns[split], numbers.get(split), words, reading, f"data.{split}")
            for split, table in kept.items()
        }
        return Found.by_split(parts, ORIGIN)


def is_table(value: Any) -> bool:
    """Whether it has columns: a data frame or dataset of any package that speaks Arrow, or one of ``datasets``."""
    return hasattr(value, "__arrow_c_stream__") or _is_hugging_face(value)


def as_table(value: Any, where: str) -> Any:
    """An Arrow table of it, in one piece, without an index, with words in the place of categories."""
    if not is_table(value):
        raise DataError(f"{where} is {type(value).__name__}; give a table as for the other splits")
    try:
        if _is_hugging_face(value):
            table = value.with_format("arrow")[:]
        elif hasattr(value, "iloc"):
            table = pa.Table.from_pandas(value, preserve_index=False)
        else:
            table = pa.table(value)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise DataError(f"{where} cannot be read as a table: {str(error).splitlines()[0]}") from None
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, pc.cast(table[place], field.type.value_type))
    metadata = table.schema.metadata or {}
    only = {HUGGING_FACE: metadata[HUGGING_FACE]} if HUGGING_FACE in metadata else None
    return table.combine_chunks().replace_schema_metadata(only)


def _is_hugging_face(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "datasets" and hasattr(value, "with_format")


def _kept(table: Any, reading: Reading, where: str) -> Any:
    return table.select(without_ignored(table.schema, reading, where).names)


def _label_column(table: Any, reading: Reading, split: str) -> str | None:
    """None for public inputs without labels."""
    usual = (reading.label_column,) if reading.label_column else LABEL_COLUMNS
    if split == "public" and not set(usual) & set(table.schema.names):
        return None
    return find_label_column(table.schema, reading, f"data.{split}")


def _labels(table: Any, name: str) -> Array:
    """Words as texts, anything else as the numbers it is."""
    column = table[name]
    if is_text(column.type):
        return np.array(checked_texts(column.to_pylist(), f"column '{name}'", "label"), dtype=np.str_)
    return np.asarray(column.to_numpy())


def _check_columns(table: Any, label: str, reading: Reading, where: str) -> None:
    """Where the number columns are the inputs, one of anything else would be lost without a word."""
    if find_input_column(table.schema, label, reading, where) is not None:
        return
    for field in table.schema:
        if field.name not in (label, reading.client_column) and not is_number(field.type):
            raise DataError(
                f"{where}: column '{field.name}' holds {field.type}, not numbers; make numbers of it, or leave it out "
                f"with data.ignore_columns = ['{field.name}']"
            )


def _contents(
    table: Any, label: str | None, numbers: Array | None, words: tuple[str, ...] | None, reading: Reading, where: str
) -> Contents:
    """A split with the numbers of its labels in their column."""
    if label is None:
        silent = replace(reading, labelled=False)
        return unlabelled(contents_of_rows(TableRows(table), None, silent, where, None).inputs)
    _check_columns(table, label, reading, where)
    classes = words or class_names(table.schema, label)
    labelled = table.set_column(table.schema.names.index(label), label, pa.array(numbers))
    return contents_of_rows(TableRows(labelled), classes, reading, where, None)
