"""Fusions that are struck, go on, and are compared with one that was left alone."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fedfuse.fusing.result_folder import DONE
from tests.reliability.crashes.mortal_files import HOWS, How, MortalFiles
from tests.reliability.forked import Forked, HangsError, command_line
from tests.reliability.fusions.cases import BEFORE, CASES

KILLED = ("before", "after", "half")
SENTENCE = 2
OUT = "out"
"""A card has the folder's name."""


@dataclass(frozen=True)
class Strike:
    """How a fusion ends: at an operation on its files, or by SIGKILL after a share of the time that it would take."""

    at: int | None
    how: How | None
    moment: float


class Trials:
    """All trials of one case, in a folder that holds the models."""

    def __init__(self, case: str, models: Path, folder: Path) -> None:
        self.case, self.models, self.folder = case, models, folder
        folder.mkdir(parents=True)
        counted, began = folder / "operations", time.monotonic()
        straight = Forked(partial(self._count, counted), folder / "log")
        straight.wait()
        if straight.code() != 0:
            raise RuntimeError(f"{case} does not even run: {straight.last_words()}")
        self.seconds = time.monotonic() - began
        self.operations = int(counted.read_text())
        self.expected = self._evidence()

    def plan(self, number: int, seed: int) -> Iterator[tuple[Strike, ...]]:
        """So many times one to three strikes, half of them at operations; the same for the same seed and code."""
        draw = random.Random(f"{seed} {self.case}")
        for _ in range(number):
            yield tuple(self._strike(draw) for _ in range(draw.randint(1, 3)))

    def fault_after(self, strikes: Sequence[Strike]) -> str:
        """What is wrong with a fusion that was struck so, and went on each time by the same command."""
        self._begin()
        try:
            for strike in strikes:
                process = Forked(partial(self._struck, strike), self.folder / "log")
                if strike.at is None:
                    _kill_after(process, strike.moment * self.seconds)
                process.wait()
                if process.code() == 0:
                    break
                if process.code() != (-signal.SIGKILL if strike.how in (*KILLED, None) else SENTENCE):
                    return f"ended with {process.code()}: {process.last_words()}"
            else:
                last = Forked(self._run, self.folder / "log")
                last.wait()
                if last.code() != 0 and "holds a fused model" not in last.last_words().replace(" | ", " "):
                    return f"does not go on: {last.last_words()}"
        except HangsError as error:
            return str(error)
        found = self._evidence()
        if any(strike.how not in (*KILLED, None) for strike in strikes):  # a disk that fails may keep what was removed
            found = {name: content for name, content in found.items() if not name.startswith(DONE)}
        differs = sorted(n for n in found.keys() | self.expected.keys() if found.get(n) != self.expected.get(n))
        return f"differs in {', '.join(differs)}" if differs else ""

    def _strike(self, draw: random.Random) -> Strike:
        if draw.random() < 0.5:
            return Strike(None, None, draw.random())
        return Strike(draw.randint(1, self.operations), draw.choice(HOWS), 0.0)

    def _begin(self) -> None:
        shutil.rmtree(self.folder / OUT, ignore_errors=True)
        if self.case in BEFORE:
            before = Forked(partial(self._command, BEFORE[self.case]), self.folder / "log")
            before.wait()

    def _count(self, counted: Path) -> None:
        if self.case in BEFORE:
            self._command(BEFORE[self.case])
        files = MortalFiles(self.folder / OUT)
        self._run()
        counted.write_text(str(files.count))

    def _struck(self, strike: Strike) -> None:
        if strike.at is not None and strike.how is not None:
            MortalFiles(self.folder / OUT, strike.at, strike.how)
        self._run()

    def _run(self) -> None:
        self._command(CASES[self.case])

    def _command(self, words: Sequence[str]) -> None:
        from fedfuse.fusing import teaching

        teaching.EVERY = 0.0  # such short lessons would end before anything is kept of them
        os.chdir(self.models)
        command_line("fuse", *words, "--out", str(self.folder / OUT), "--quiet")

    def _evidence(self) -> dict[str, bytes]:
        out = self.folder / OUT
        return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def _kill_after(process: Forked, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    process.wait(lambda: time.monotonic() > deadline)
    if process.code() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
