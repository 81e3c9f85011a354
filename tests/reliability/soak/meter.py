"""What a run has of the system's goods after a round: read from /proc, workers included."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.reliability.forked import below

TICKS = os.sysconf("SC_CLK_TCK")
"""In a second."""
SPAN = 0.4
"""The share of the rounds since the mark before over which a mark's times and bytes are taken."""


@dataclass(frozen=True)
class Mark:
    """The state of things after a round."""

    round: int
    megabytes: float
    """Memory that is no file's and nobody else's."""
    handles: int
    threads: int
    files: int
    """In the run's folder."""
    milliseconds: float
    """By the clock, the median of some rounds before."""
    work: float
    """Milliseconds of processors, the mean of the same rounds."""
    kilobytes: float
    """Written in a round, the mean of the same rounds."""


class Meter:
    """A listener that takes marks when these rounds are finished."""

    def __init__(self, folder: Path, rounds: Sequence[int]) -> None:
        self.folder, self.marks = folder, list[Mark]()
        spans = zip((0, *rounds), rounds, strict=False)
        self._first = {after: after - int(SPAN * (after - before)) for before, after in spans}
        self._ends: list[float] = []
        self._spent: dict[int, tuple[int, int]] = {}

    def __call__(self, event: Mapping[str, Any]) -> None:
        if event["event"] != "round_finished":
            return
        self._ends.append(time.perf_counter())
        if event["round"] in self._first.values():
            self._spent[event["round"]] = self._spent_so_far()
        if event["round"] in self._first:
            self.marks.append(self._mark(event["round"], self._first[event["round"]]))

    def _mark(self, number: int, first: int) -> Mark:
        processes = _processes()
        work, written = (now - then for now, then in zip(self._spent_so_far(), self._spent[first], strict=True))
        taken = self._ends[first - 1 : number]
        rounds = [later - earlier for earlier, later in pairwise(taken)]
        return Mark(
            number,
            megabytes=round(sum(map(_kilobytes_of, processes)) / 1024, 1),
            handles=sum(_entries(pid, "fd") for pid in processes),
            threads=sum(_entries(pid, "task") for pid in processes),
            files=sum(path.is_file() for path in self.folder.rglob("*")),
            milliseconds=round(1000 * statistics.median(rounds), 2),
            work=round(1000 * work / TICKS / (number - first), 2),
            kilobytes=round(written / (number - first) / 1000, 2),
        )

    def _spent_so_far(self) -> tuple[int, int]:
        """Processors' ticks, and bytes written."""
        return sum(map(_ticks_of, _processes())), _bytes_written()


def _processes() -> set[int]:
    return {os.getpid(), *below(os.getpid())}


def _ticks_of(pid: int) -> int:
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))


def _bytes_written() -> int:
    return int(Path("/proc/self/io").read_text().split("wchar:")[1].split()[0])


def _kilobytes_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().split("RssAnon:")[1].split()[0])


def _entries(pid: int, what: str) -> int:
    return len(list(Path(f"/proc/{pid}/{what}").iterdir()))
