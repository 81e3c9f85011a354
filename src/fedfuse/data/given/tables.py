"""Tables with a column of labels: pandas data frames, Hugging Face datasets, Arrow tables."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import feather

from fedfuse.core.errors import DataError, shortened
from fedfuse.data.given.labels import ORIGIN
from fedfuse.data.readers import Contents, Found, Reading
from fedfuse.data.readers.columns import LABEL_COLUMNS, without_ignored
from fedfuse.data.readers.contents import unlabelled
from fedfuse.data.readers.encoding import as_words
from fedfuse.data.readers.parquet import class_names
from fedfuse.data.readers.survey import surveyed
from fedfuse.data.readers.table import BATCH, Table, contents_of_tables, decoded

HUGGING_FACE = b"huggingface"
MIXED = re.compile(r"Conversion failed for column (.+) with type")
CATEGORIES = b"fedfuse.categories"
"""Where a table keeps what its columns of categories could hold: pandas knows them without an example."""


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
            metadata = table.schema.metadata or {}
            names = metadata.get(HUGGING_FACE, b"") + metadata.get(CATEGORIES, b"")
            digest.update(f"{split} {table.schema.remove_metadata()}\n".encode() + names)
            for batch in table.to_batches(BATCH):
                digest.update(batch.serialize())
        return digest.hexdigest()

    def read(self, reading: Reading) -> Found:
        kept = {split: _kept(table, reading, f"data.{split}") for split, table in self.tables.items()}
        told = surveyed([kept["train"]], reading)
        return Found.by_split({split: _contents(table, told, split) for split, table in kept.items()}, ORIGIN)


def is_table(value: Any) -> bool:
    """Whether it has columns: a data frame or dataset of any package that speaks Arrow, or one of ``datasets``."""
    is_column = hasattr(value, "iloc") and not hasattr(value, "columns")
    return (hasattr(value, "__arrow_c_stream__") and not is_column) or _is_hugging_face(value)


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
        plain = pa.table([decoded(column) for column in table.columns], table.schema.names)
    except (pa.ArrowException, ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{where} cannot be read as a table: {_reason(error)}") from None
    metadata = table.schema.metadata or {}
    only = {HUGGING_FACE: metadata[HUGGING_FACE]} if HUGGING_FACE in metadata else {}
    if known := _categories(table):
        only[CATEGORIES] = json.dumps(known).encode()
    return plain.combine_chunks().replace_schema_metadata(only or None)


def _reason(error: Exception) -> str:
    """In the words of Arrow, unless it names a column."""
    mixed = MIXED.search(" ".join(map(str, error.args)))
    if mixed:
        return f"column '{shortened(mixed[1])}' holds values of different kinds; make them all numbers or all words"
    return shortened((str(error).splitlines() or [type(error).__name__])[0], 300)


def _categories(table: Any) -> dict[str, list[str]]:
    """The columns of categories, and all that each may hold."""
    found: dict[str, list[str]] = {}
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if pa.types.is_dictionary(column.type) and not pa.types.is_nested(column.type.value_type):
            words = {word for chunk in column.chunks for word in as_words(chunk.dictionary).to_pylist() if word}
            found[name] = sorted(words)
    return found


def _is_hugging_face(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "datasets" and hasattr(value, "with_format")


def _kept(table: Any, reading: Reading, where: str) -> Table:
    schema = without_ignored(table.schema, reading, where)
    known = json.loads((table.schema.metadata or {}).get(CATEGORIES, b"{}"))
    label = next((name for name in _label_columns(reading) if name in schema.names), None)
    names = class_names(table.schema, label)
    return Table.of(table.select(schema.names), where, class_names=names, categories=known)


def _contents(table: Table, reading: Reading, split: str) -> Contents:
    """Public inputs need no labels."""
    with table.opened() as rows:
        has_labels = bool(set(_label_columns(reading)) & set(rows.schema.names))
    if split == "public" and not has_labels:
        return unlabelled(contents_of_tables([table], replace(reading, labelled=False, label_column=None)).inputs)
    return contents_of_tables([table], reading)


def _label_columns(reading: Reading) -> tuple[str, ...]:
    return (reading.label_column,) if reading.label_column else LABEL_COLUMNS
