"""Whatever Python gives as ``data``, sorted into splits, and the section that names it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedfuse.core.errors import DataError, unknown
from fedfuse.data.given.arrays import Arrays
from fedfuse.data.given.memory import hold
from fedfuse.data.given.tables import Tables, is_table

SPLITS = ("train", "test", "validation", "public")
OFFICIAL = ("validation", "public")
"""Splits that an experiment takes from the training examples unless it is told otherwise."""
NAMES = {
    "train": (("x", "y"), ("inputs", "labels"), ("x_train", "y_train")),
    "test": (("x_test", "y_test"),),
}
"""What an npz file calls inputs and labels of a split."""


def data_section(data: Any) -> Any:
    """The section ``data`` of an experiment for examples in memory; anything else is returned as it is.

    Examples are a pair of inputs and labels, a pair of such pairs for training and test, a table, or a mapping of these
    by split, in which other keys of the section may stand too.
    """
    values = _by_names(data) if isinstance(data, Mapping) else _by_split(data)
    if values is None:
        if _is_array(data):
            raise DataError("data is no pair; give (inputs, labels), a table, or a mapping of these by split")
        if type(data).__module__.startswith("torch.utils.data"):
            raise DataError(
                f"data is a {type(data).__name__}, which says what it holds one by one; give arrays, (inputs, labels), "
                "or a function that returns them"
            )
        return data
    for key, value in values.items():
        if key not in (*SPLITS, "clients") and _are_surely_examples(value):
            raise DataError(f"data: {unknown('split', str(key), SPLITS)}")
    splits = {split: values[split] for split in SPLITS if _are_examples(values.get(split))}
    if not splits:
        return data
    if "train" not in splits:
        raise DataError(f"data has {', '.join(splits)} but no train; give the training examples, too")
    clients = values.get("clients")
    others = {key: value for key, value in values.items() if key not in (*splits, "clients")}
    official = dict.fromkeys((split for split in OFFICIAL if split in splits), "official")
    return {**_held(splits, clients), **official, **others}


def _by_names(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Arrays that are called as in an npz file (``x``, ``y``, ``x_train``, ...) as pairs of the splits."""
    found = {}
    for split, pairs in NAMES.items():
        names = next((pair for pair in pairs if all(_is_array(data.get(name)) for name in pair)), None)
        if names is not None and split not in data:
            found[split] = tuple(data[name] for name in names)
            data = {key: value for key, value in data.items() if key not in names}
    return {**data, **found}


def _held(splits: Mapping[str, Any], clients: Any) -> dict[str, str]:
    if not is_table(splits["train"]):
        return {"name": "arrays", "path": hold(Arrays.of(splits, clients))}
    if clients is not None:
        raise DataError("data.clients is for arrays; of a table, name the column: data.client_column")
    return {"name": "tables", "path": hold(Tables.of(splits))}


def _by_split(data: Any) -> Mapping[str, Any] | None:
    if is_table(data):
        return {"train": data}
    if not isinstance(data, tuple | list) or len(data) != 2:
        return None
    both = all(isinstance(part, tuple | list) and len(part) == 2 and all(map(_is_array, part)) for part in data)
    return dict(zip(("train", "test"), data, strict=True)) if both else {"train": data}


def _are_surely_examples(value: Any) -> bool:
    return is_table(value) or (isinstance(value, tuple) and any(map(_is_array, value)))


def _are_examples(value: Any) -> bool:
    return value is not None and not isinstance(value, str | int | float)


def _is_array(value: Any) -> bool:
    return isinstance(value, list | tuple) or hasattr(value, "__array__")
