"""The teachers' answers while students learn: computed in the order in which steps need them, a chunk at a time.

In one process a chunk is computed when a step needs it. Where an engine has other processes, they compute the next
chunks while the student learns from the present one, and it waits only for answers that are not there yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from fedfuse.parts.fuse.batches import FreshStep, Step
from fedfuse.parts.teachers import Asked
from fedfuse.runtime.pool import IN_PROCESS, Pool, Progress, silence
from fedfuse.runtime.source import Source

CHUNK = 1024
"""Inputs about which every teacher is asked before the next chunk begins: loading its weights then costs little."""
KEPT = 2**28
"""Most bytes of answers that are kept so that several students have them, where every step has inputs of its own."""

Ask = Callable[[Sequence[Asked], Progress, Pool], Iterator[Tensor]]
"""The ensemble: its answers to one question after another."""


class AnswerTable:
    """Answers about a source's inputs, read like a table by their positions."""

    def __init__(self, size: int, chunks: Sequence[Tensor], coming: Iterator[Tensor]) -> None:
        self._size = size
        self._chunks = iter(chunks)
        self._coming = coming
        self._known = torch.zeros(size, dtype=torch.bool)
        self._table: Tensor | None = None

    def __getitem__(self, where: Tensor) -> Tensor:
        while self._table is None or not self._known[where].all():
            self._take(next(self._chunks))
        return self._table[where]

    def _take(self, chunk: Tensor) -> None:
        said = next(self._coming)
        if self._table is None:
            self._table = torch.zeros(self._size, said.shape[1], device=said.device)
        self._table[chunk] = said
        self._known[chunk] = True

    def __reduce__(self) -> tuple[Callable[[Tensor], Tensor], tuple[Tensor | None]]:
        """What travels to another process is the whole table."""
        for chunk in self._chunks:
            self._take(chunk)
        return _itself, (self._table,)


class StepAnswers:
    """Answers to steps with inputs of their own, read by the steps' numbers.

    Each is forgotten when it was read, unless they are to be ``kept`` for further students; a student that begins anew
    where nothing was kept has teachers asked anew.
    """

    def __init__(
        self, steps: Sequence[FreshStep], ask: Ask, kept: bool, progress: Progress = silence, pool: Pool = IN_PROCESS
    ) -> None:
        self.steps = steps
        self.kept = kept
        self._ask, self._progress, self._pool = ask, progress, pool
        self._said: dict[int, Tensor] = {}
        self._coming: Iterator[Tensor] = iter(())
        self._asked = 0

    def __getitem__(self, number: int) -> Tensor:
        if number not in self._said:
            self._wait_for(number)
        return self._said[number] if self.kept else self._said.pop(number)

    def _wait_for(self, number: int) -> None:
        if number < self._asked or not self._asked:
            self._begin()
        while self._asked <= number:
            self._take()

    def _begin(self) -> None:
        groups = [self.steps[start : start + self._together] for start in range(0, len(self.steps), self._together)]
        questions = [Asked([step.asked for step in group]) for group in groups]
        self._said, self._asked = {}, 0
        self._coming = self._ask(questions, self._progress, self._pool)

    def _take(self) -> None:
        group = self.steps[self._asked : self._asked + self._together]
        for said in next(self._coming).split([step.size for step in group]):
            self._said[self._asked] = said
            self._asked += 1

    @property
    def _together(self) -> int:
        """Steps per question."""
        return max(1, CHUNK // max(step.size for step in self.steps))

    def __getstate__(self) -> dict[str, Any]:
        """What travels to another process are all answers, or else the teachers, to be asked there."""
        if self.kept and len(self._said) < len(self.steps):
            self._wait_for(len(self.steps) - 1)
        alone = {"_coming": iter(()), "_asked": len(self._said), "_progress": silence, "_pool": IN_PROCESS}
        return {**vars(self), **alone, **({"_ask": None} if self.kept else {"_said": {}, "_asked": 0})}


def new(answers: StepAnswers, number: int) -> tuple[Tensor, Tensor]:
    """One step's own inputs, and what teachers say about them."""
    said = answers[number]
    return answers.steps[number].shown(), said


def in_order_of_need(source: Source, plan: Sequence[Step]) -> list[Tensor]:
    """The positions that a plan shows, each once, in chunks.

    Where all are one chunk they lie as in the source, and so do texts, of which each batch is padded to its longest:
    other neighbours in a batch can change the last bit of what some networks say.
    """
    seen, needed = torch.zeros(len(source), dtype=torch.bool), list[Tensor]()
    for where, _ in plan:
        if not seen[where].all():
            needed.append(where[~seen[where]])
            seen[where] = True
    if source.lengths is not None or int(seen.sum()) <= CHUNK:
        return [seen.nonzero().squeeze(1)]
    return list(torch.cat(needed).split(CHUNK))


def fits(steps: Sequence[Step], batch_size: int, classes: int) -> bool:
    """Whether answers to all steps can be kept."""
    return len(steps) * batch_size * classes * 4 <= KEPT


def _itself(table: Tensor) -> Tensor:
    return table
