"""The two files of a partition: a small JSON for people, and beside it the arrays, which hold everything."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedfuse.core.errors import DataError
from fedfuse.core.files import write_text
from fedfuse.core.plain_json import dumps
from fedfuse.core.tensor_files import read_safetensors, write_safetensors
from fedfuse.data.partition.assignment import Assignment

Array = NDArray[Any]
NEEDED = {"partition", "examples", "classes", "clients", "sha256"}
"""Facts without which a file is no partition."""
MOST = 1 << 30
"""Of examples and of classes, above which a number is a mistake."""


@dataclass(frozen=True)
class Stored:
    """What is in the files: ``about`` for people and for checking, the rest as it is used."""

    about: Mapping[str, Any]
    assignment: Assignment
    labels: Array
    names: list[str] | None


def arrays_beside(path: Path) -> Path:
    """Where the arrays of a ``partition.json`` lie."""
    return path.with_suffix(".safetensors")


def write(path: Path, stored: Stored) -> None:
    """The arrays first: where the JSON lies, the partition is whole."""
    arrays = {"positions": stored.assignment.positions, "ends": stored.assignment.ends, "labels": stored.labels}
    tensors = {name: torch.from_numpy(_narrow(array)) for name, array in arrays.items()}
    text = _readable(stored.about)
    about = {"names": stored.names, "json_sha256": hashlib.sha256(text.encode()).hexdigest()}
    write_safetensors(arrays_beside(path), tensors, about)
    write_text(path, text)


def read(path: Path) -> Stored:
    """What was written; the files of older versions too."""
    try:
        text = path.read_bytes()
        about = json.loads(text)
        stored = _older(about) if "assignment" in about else _stored(about, arrays_beside(path), text)
        _check(stored)
        return stored
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise DataError(f"{path} cannot be read as a partition; it was changed or cut off, so make it again") from error


def _check(stored: Stored) -> None:
    about, assignment = stored.about, stored.assignment
    if not about.keys() >= NEEDED:
        raise LookupError("a fact is missing")
    numbers = (about["examples"], about["classes"])
    if not all(type(number) is int and 0 <= number < MOST for number in numbers) or (assignment.sizes < 0).any():
        raise ValueError("a number that there cannot be")
    if len(assignment.positions) != len(stored.labels) or stored.labels.max(initial=0) >= max(about["classes"], 1):
        raise ValueError("arrays of different partitions")
    if "class_names" in about and not _are_names(about["class_names"], about["classes"]):
        raise ValueError("names of other classes")


def _are_names(value: Any, count: int) -> bool:
    return isinstance(value, list) and len(value) == count and all(isinstance(name, str) for name in value)


def _stored(about: Mapping[str, Any], arrays: Path, text: bytes) -> Stored:
    tensors, others = read_safetensors(arrays)
    if others.get("json_sha256", now := hashlib.sha256(text).hexdigest()) != now:
        raise ValueError("facts of another partition")
    positions, ends = (tensors[name].long().numpy() for name in ("positions", "ends"))
    if len(ends) != about["clients"] or ends[-1] != len(positions):
        raise ValueError("arrays of different partitions")
    return Stored(about, Assignment(positions, ends), tensors["labels"].numpy(), others["names"])


def _older(about: Mapping[str, Any]) -> Stored:
    """Everything was in the JSON, with the classes of each client counted."""
    parts = [np.array(part, dtype=np.int64) for part in about["assignment"]]
    counts = np.array([client["class_counts"] for client in about["clients"]], dtype=np.int64)
    if not np.array_equal(counts.sum(axis=1), list(map(len, parts))):
        raise ValueError("counts of another partition")
    labels = np.repeat(np.tile(np.arange(counts.shape[1]), len(counts)), counts.ravel())
    return Stored(
        {**about, "clients": len(parts), "classes": counts.shape[1]},
        Assignment.of(parts),
        labels,
        [str(client["name"]) for client in about["clients"]],
    )


def _narrow(array: Array) -> Array:
    """The same numbers in as few bytes as they need."""
    largest = int(array.max(initial=0))
    smallest = next(kind for kind in (np.uint8, np.int32, np.int64) if largest <= np.iinfo(kind).max)
    return array.astype(smallest)


def _readable(about: Mapping[str, Any]) -> str:
    """A line for every fact, and one for every item of a list."""
    return "{\n" + ",\n".join(f"  {dumps(name)}: {_value(value)}" for name, value in about.items()) + "\n}\n"


def _value(value: Any) -> str:
    if not isinstance(value, list):
        return dumps(value)
    return "[\n" + ",\n".join(f"    {dumps(item)}" for item in value) + "\n  ]"
