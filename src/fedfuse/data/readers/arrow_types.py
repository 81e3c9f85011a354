"""What an Arrow type means for learning: numbers, words, truth values, images, lists."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def is_truth(kind: Any) -> bool:
    return bool(pa.types.is_boolean(kind))


def is_plain(kind: Any) -> bool:
    """A single number, or true or false, or nothing in all cells."""
    return is_number(kind) or is_truth(kind) or bool(pa.types.is_decimal(kind) or pa.types.is_null(kind))


def is_date(kind: Any) -> bool:
    """Or a time of the day, or the time between two dates."""
    return bool(pa.types.is_temporal(kind))


def is_image(kind: Any) -> bool:
    """Encoded bytes, or the Hugging Face convention, struct<bytes, path>."""
    return _is_binary(kind) or (
        pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0 and _is_binary(kind.field("bytes").type)
    )


def is_list(kind: Any) -> bool:
    """Of numbers, as many in each row as in any other if all is well."""
    listed = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return bool(listed and is_number(kind.value_type))


def _is_binary(kind: Any) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
