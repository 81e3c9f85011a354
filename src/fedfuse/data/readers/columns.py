"""Which columns of a table are what: label, client, inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from fedfuse.core.errors import DataError, did_you_mean, listed, shortened, suggest
from fedfuse.data.readers.arrow_types import is_image, is_list, is_plain, is_text
from fedfuse.data.readers.contents import Reading
from fedfuse.data.readers.labels import is_a_number

LABEL_COLUMNS = ("label", "labels", "fine_label", "target", "y")
INPUT_COLUMNS = ("image", "img", "inputs", "features", "x")
TEXT_COLUMNS = ("text", "sentence", "content")


def without_ignored(schema: Any, reading: Reading, where: str) -> Any:
    """The schema of what is read; a column that is to be ignored must be there, since it might be misspelt."""
    for name in reading.ignored:
        known_column(schema, name, "data.ignore_columns", where)
    out, known = {*reading.ignored, *reading.passed_over}, _known_names(schema, reading, where)
    fields = [field for field in schema if field.name not in out and (known is None or field.name in known)]
    kept = pa.schema(fields, schema.metadata)
    _check_names(kept.names, schema.names, where)
    return kept


def _check_names(names: Sequence[str], everything: Sequence[str], where: str) -> None:
    """Each column has a name of its own; where only one has none, that tells it from the others, too."""
    name, times = next(iter(Counter(names).most_common(1)), ("", 0))
    if times < 2:
        return
    if is_a_number(name):
        raise DataError(_no_header(names, where))
    if name:
        raise DataError(f"{where} has {times} columns '{shortened(name)}'; give each a name of its own")
    places = [str(place) for place, one in enumerate(everything, start=1) if not one]
    raise DataError(
        f"{where} has {times} columns without a name ({listed(places)}); give each one, or leave them all out with "
        'data.ignore_columns: [""]'
    )


def _no_header(names: Sequence[str], where: str) -> str:
    return (
        f"{where} begins with numbers ({shortened(', '.join(names))}) and not with the names of columns; if it has "
        "none, set data.header to false and data.label_column to the place of the labels, counted from 1"
    )


def _known_names(schema: Any, reading: Reading, where: str) -> set[str | None] | None:
    """All that is looked at where the inputs are known by their names; None where they are not."""
    there = set(schema.names)
    if reading.encoding is None or not set(reading.encoding.names) & there:
        return None
    for name in reading.encoding.names if reading.input_column is None else ():
        if name not in there:
            raise DataError(f"{where} has no column '{shortened(name)}', which is an input{did_you_mean(name, there)}")
    labels = LABEL_COLUMNS if reading.label_column is None else (reading.label_column,)
    return {*reading.encoding.names, *labels, reading.client_column, reading.input_column}


def find_label_column(schema: Any, reading: Reading, where: str) -> str | None:
    """The asked-for label column, or the first usual one; None where there is none and none is wanted."""
    if reading.label_column is not None:
        return known_column(schema, reading.label_column, "data.label_column", where)
    for name in LABEL_COLUMNS:
        if name in schema.names:
            return name
    if not reading.labelled:
        return None
    if 2 * sum(map(is_a_number, schema.names)) > len(schema.names):
        raise DataError(_no_header(schema.names, where))
    columns = shortened(", ".join(name or '""' for name in schema.names))
    several = "; if it has several, set data.separator to what separates them" if len(schema.names) == 1 else ""
    raise DataError(
        f"{where} has no column {' or '.join(LABEL_COLUMNS)}; set data.label_column to one of: {columns}{several}"
    )


def find_input_column(schema: Any, label_column: str | None, reading: Reading, where: str) -> str | None:
    """The asked-for column of inputs, or one that can be nothing else; None where all columns are inputs."""
    if reading.input_column is not None:
        return known_column(schema, reading.input_column, "data.input_column", where)
    fields = input_fields(schema, label_column, reading)
    # A column of numbers is one among others, even if it is called x.
    named = [field.name for field in fields if field.name in INPUT_COLUMNS and not is_plain(field.type)]
    typed = [field.name for field in fields if is_image(field.type) or is_list(field.type)]
    texts = [field.name for field in fields if field.name in TEXT_COLUMNS and is_text(field.type)]
    return next(iter(named + typed + (texts if reading.tokenizer else [])), None)


def input_fields(schema: Any, label_column: str | None, reading: Reading) -> list[Any]:
    """All fields but those of the label and the client."""
    return [field for field in schema if field.name not in (label_column, reading.client_column)]


def known_column(schema: Any, column: str, key: str, where: str) -> str:
    if column not in schema.names:
        raise DataError(f"{key}: {where} has no column '{shortened(column)}'{suggest(column, schema.names)}")
    return column
