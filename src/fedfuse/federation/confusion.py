"""Which classes the final models take for which: measured once, at the end of a run, for whoever looks at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fedfuse.core.bounded import read_json
from fedfuse.core.errors import RunFolderError
from fedfuse.core.files import is_there, write_text
from fedfuse.core.plain_json import dumps
from fedfuse.runtime.evaluate import Evaluator, Values

FORMAT = 1
MOST_CLASSES = 100
"""Of which every pair is counted; of more, only how many of each class were right."""
MOST_LISTED = 10_000
"""Classes, above which nothing is written."""
MOST_BYTES = 1 << 24
"""Of the file, far above what is ever written."""
Numbers = tuple[int, ...]


@dataclass(frozen=True)
class Confusion:
    """Of each class, how many test examples there are, how many a model got right, and what it took them for.

    ``matrix`` has a row for each true class and a column for each answer; None where classes are too many.
    """

    examples: Numbers
    right: Numbers
    matrix: tuple[Numbers, ...] | None

    @staticmethod
    def of(answers: Tensor, labels: Tensor, classes: int) -> Confusion:
        examples = torch.bincount(labels, minlength=classes)
        right = torch.bincount(labels[answers == labels], minlength=classes)
        pairs = torch.bincount(labels * classes + answers, minlength=classes**2) if classes <= MOST_CLASSES else None
        matrix = None if pairs is None else tuple(tuple(row) for row in pairs.reshape(classes, classes).tolist())
        return Confusion(tuple(examples.tolist()), tuple(right.tolist()), matrix)

    @property
    def accuracies(self) -> tuple[float | None, ...]:
        """Of each class; None where there is no example."""
        return tuple(own / of if of else None for own, of in zip(self.right, self.examples, strict=True))


def measured(test: Evaluator, model: nn.Module, classes: int) -> Confusion:
    """One more look at the test examples, in the very way in which the accuracy was measured."""
    found: list[Confusion] = []

    def count(logits: Tensor, labels: Tensor) -> Values:
        found.append(Confusion.of(logits.argmax(dim=1), labels, classes))
        return {}

    replace(test, measure=count).score(model)
    return found[0]


def write(path: Path, confusions: Mapping[str, Confusion]) -> None:
    """By model, in one line: ``fedfuse show`` and ``fedfuse report`` show it to people."""
    models = {name: asdict(own) for name, own in confusions.items()}
    write_text(path, dumps({"format": FORMAT, "models": models}) + "\n")


def read(path: Path) -> dict[str, Confusion]:
    """By model; nothing of runs that wrote none, as those of earlier versions."""
    if not is_there(path):
        return {}
    value = read_json(path, MOST_BYTES)
    models = value.get("models") if isinstance(value, dict) and value.get("format") == FORMAT else None
    if not isinstance(models, dict) or not all(map(_is_sound, models.values())):
        raise RunFolderError(f"{path} is damaged; bring it back, or remove it")
    return {name: _confusion(own) for name, own in models.items()}


def _confusion(own: Mapping[str, Any]) -> Confusion:
    matrix = own["matrix"]
    rows = None if matrix is None else tuple(map(tuple, matrix))
    return Confusion(tuple(own["examples"]), tuple(own["right"]), rows)


def _is_sound(own: Any) -> bool:
    """Whether all numbers are there, and agree with each other."""
    if not isinstance(own, dict) or not {"examples", "right", "matrix"} <= own.keys():
        return False
    examples, right, matrix = own["examples"], own["right"], own["matrix"]
    if not _are_counts(examples) or not _are_counts(right) or len(examples) != len(right):
        return False
    if any(some > of for some, of in zip(right, examples, strict=True)):
        return False
    return matrix is None or _is_matrix(matrix, examples, right)


def _is_matrix(matrix: Any, examples: list[int], right: list[int]) -> bool:
    return (
        isinstance(matrix, list)
        and len(matrix) == len(examples)
        and all(_are_counts(row) and len(row) == len(examples) for row in matrix)
        and [sum(row) for row in matrix] == examples
        and [row[place] for place, row in enumerate(matrix)] == right
    )


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(number) is int and 0 <= number < 1 << 40 for number in value)
