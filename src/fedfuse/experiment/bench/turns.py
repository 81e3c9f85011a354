"""Contenders take turns, each in a process of its own; what they say is kept, so that an interrupted bench goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fedfuse.core.files import write_text
from fedfuse.core.plain_json import dumps
from fedfuse.experiment.bench.cores import stay_on_one_core
from fedfuse.experiment.bench.workloads.base import Contender, Outcome, SizeName, Workload

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Turn:
    """What one contender said in one turn, or why it said nothing."""

    workload: str
    contender: str
    number: int
    numbers: Mapping[str, float] = field(default_factory=dict)
    chosen: str = ""
    failure: str = ""

    @property
    def key(self) -> tuple[str, str, int]:
        return self.workload, self.contender, self.number


@dataclass(frozen=True)
class Plan:
    """Which workloads, how large, and how often."""

    workloads: Sequence[Workload]
    size: SizeName
    turns: int
    folder: Path
    assignments: tuple[str, ...] = ()

    def places(self) -> Iterator[tuple[Workload, int, Contender]]:
        """Turn by turn, and inside a turn contender after contender, so that all meet the same weather."""
        for workload in self.workloads:
            for number in range(self.turns):
                for contender in workload.contenders:
                    if self.size in contender.sizes:
                        yield workload, number, contender


class Kept:
    """Finished turns in a file, a line each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else ()
        turns = [Turn(**entry) for line in lines if (entry := _parsed(line)) is not None]
        self.turns = {turn.key: turn for turn in turns}

    @staticmethod
    def anew(path: Path) -> Kept:
        """Without what the file holds."""
        path.unlink(missing_ok=True)
        return Kept(path)

    def add(self, turn: Turn) -> None:
        self.turns[turn.key] = turn
        write_text(self.path, "".join(dumps(vars(one)) + "\n" for one in self.turns.values()))


class Progress(Protocol):
    """Whoever wants to know how far a bench is."""

    def begins(self, workload: Workload, number: int, contender: Contender) -> None:
        """It is this contender's turn."""

    def ends(self, turn: Turn, was_kept: bool) -> None:
        """It is over, or was over already."""


class Unheard:
    """Nobody does."""

    def begins(self, workload: Workload, number: int, contender: Contender) -> None:
        pass

    def ends(self, turn: Turn, was_kept: bool) -> None:
        pass


def take_turns(plan: Plan, kept: Kept, progress: Progress) -> list[Turn]:
    """All turns of the plan; those that were kept are not repeated, failures are, but not in the same bench."""
    turns, given_up = [], set()
    for workload, number, contender in plan.places():
        if (workload.code, contender.name) in given_up:
            continue
        turn = kept.turns.get((workload.code, contender.name, number))
        was_kept = turn is not None and not turn.failure
        if turn is None or not was_kept:
            progress.begins(workload, number, contender)
            turn = _played(plan, workload, number, contender)
            if turn.failure:
                given_up.add((workload.code, contender.name))
            else:
                kept.add(turn)
        progress.ends(turn, was_kept)
        turns.append(turn)
    return turns


def _played(plan: Plan, workload: Workload, number: int, contender: Contender) -> Turn:
    place = (workload.code, contender.name, number)
    if contender.unusable:
        return Turn(*place, failure=contender.unusable)
    try:
        outcome = _outcome(plan, workload, contender)
    except _TurnError as failure:
        return Turn(*place, failure=str(failure))
    return Turn(*place, outcome.numbers, outcome.chosen)


class _TurnError(Exception):
    """A contender that ended without numbers; the message is one sentence."""


def _outcome(plan: Plan, workload: Workload, contender: Contender) -> Outcome:
    words = (*command(workload, contender), plan.size, str(plan.folder.resolve()), *plan.assignments)
    threads = {} if contender.all_cores else ONE_THREAD
    begin = None if contender.all_cores else stay_on_one_core
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        env={**os.environ, **threads, **contender.environment}, preexec_fn=begin, start_new_session=True,
    )  # fmt: skip
    try:
        said, complaint = process.communicate(timeout=workload.seconds)
    except subprocess.TimeoutExpired:
        raise _TurnError(f"took longer than {workload.seconds} s") from None
    finally:
        _end(process)
    last = _parsed(said.strip().rpartition("\n")[2])
    if process.returncode or last is None:
        raise _TurnError(_last_line(complaint) or f"ended with code {process.returncode} and without numbers")
    return Outcome(last["numbers"], last["chosen"])


def command(workload: Workload, contender: Contender) -> tuple[str, ...]:
    """How its turn is started, without size, folder and assignments."""
    ours = (sys.executable, "-m", "fedfuse.experiment.bench.turn", workload.code, contender.name)
    return contender.command or ours


def _end(process: subprocess.Popen[str]) -> None:
    """With whatever it started and left."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except json.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
