"""Whether checkpoints are of one architecture: the same names, shapes and types of tensors."""

from __future__ import annotations

from collections.abc import Sequence

from fedfuse.core.errors import DataError, shortened
from fedfuse.fusing.merging.checkpoint import Checkpoint


def require_same_shape(checkpoints: Sequence[Checkpoint]) -> None:
    """Raise a DataError that names the first difference from the first checkpoint, and the file."""
    first, *others = checkpoints
    for name, held in first.tensors.items():
        if held.place.dtype.is_complex:
            raise DataError(f"{held.path}: {shortened(name)!a} has complex numbers, which no merge is defined for")
    for other in others:
        _compare(first, other)


def _compare(first: Checkpoint, other: Checkpoint) -> None:
    for name, held in first.tensors.items():
        theirs = other.tensors.get(name)
        if theirs is None:
            raise DataError(f"{other.path} has no tensor {shortened(name)!a}, which {first.path} has; {_WHY}")
        if theirs.like != held.like:
            raise DataError(
                f"{theirs.path}: {shortened(name)!a} is {theirs.like}, but {held.like} in {held.path}; {_WHY}"
            )
    for name in other.tensors:
        if name not in first.tensors:
            raise DataError(f"{other.path} has a tensor {shortened(name)!a}, which {first.path} has not; {_WHY}")


_WHY = "a merge needs the same names, shapes and types"
