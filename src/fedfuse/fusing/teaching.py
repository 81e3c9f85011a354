"""Teach the student: the distillation of an ensemble's answers, which goes on where it was interrupted."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from fedfuse.core.randomness import Key
from fedfuse.core.tensor_files import DamagedError, read_safetensors, write_safetensors
from fedfuse.fusing.student import StudentInputs
from fedfuse.parts.fuse.batches import batches_from
from fedfuse.parts.fuse.distiller import DistillContext, Distilled, Distiller
from fedfuse.parts.fuse.lesson import Bookmark, Judge, Lesson
from fedfuse.runtime.pool import Progress

EVERY = 5.0
"""Seconds between two bookmarks; what is lost by a kill. It does not change what comes out."""


def teach(
    student: nn.Module,
    inputs: StudentInputs,
    answers: Tensor,
    distiller: Distiller,
    validation: Judge | None,
    key: Key,
    bookmark: Bookmark | None,
    progress: Progress,
) -> Distilled:
    """Train the student, in place, towards log-probabilities for the inputs, a row for each."""
    plan = distiller.plan(inputs, key)
    batches = batches_from(inputs, answers, plan, augmented=inputs.crop or inputs.flip)
    with inputs.compute.at_work():
        return distiller.distil(student, batches, DistillContext(inputs, validation, key, progress, bookmark))


class FileBookmark(Bookmark):
    """How far a distillation is, in one file that belongs to one plan: another plan begins anew."""

    def __init__(self, path: Path, plan: str) -> None:
        self.path, self.plan = path, plan
        self._written = time.monotonic()

    def read(self) -> Mapping[str, Tensor] | None:
        try:
            state, about = read_safetensors(self.path)
        except (FileNotFoundError, DamagedError):
            return None
        return state if _plan_of(about) == self.plan else None

    def offer(self, lesson: Lesson) -> None:
        if time.monotonic() - self._written >= EVERY:
            write_safetensors(self.path, lesson.state(), {"plan": self.plan})
            self._written = time.monotonic()

    def clear(self) -> None:
        self.path.unlink(missing_ok=True)


def _plan_of(about: Any) -> Any:
    return about.get("plan") if isinstance(about, Mapping) else None
