"""What a process can say of itself: processor time, wall time, bytes written, memory at its peak."""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

_STATUS, _IO, _CLEAR = Path("/proc/self/status"), Path("/proc/self/io"), Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Moment:
    """Seconds of processor time of this process, of the clock on the wall, and bytes it has written so far."""

    cpu: float
    wall: float
    written: int

    @staticmethod
    def now() -> Moment:
        return Moment(time.process_time(), time.perf_counter(), written_bytes())

    def __sub__(self, earlier: Moment) -> Moment:
        return Moment(self.cpu - earlier.cpu, self.wall - earlier.wall, self.written - earlier.written)


def median_round(ends: Sequence[Moment]) -> dict[str, float]:
    """Of the rounds between these moments, each the end of one; what came before the first of them does not count."""
    rounds = [after - before for before, after in pairwise(ends)]
    return {
        "cpu": statistics.median(round.cpu for round in rounds),
        "wall": statistics.median(round.wall for round in rounds),
        "written": statistics.median(round.written for round in rounds),
    }


def written_bytes() -> int:
    """What this process has handed to the system to write; 0 where the system does not say."""
    return _number(_IO, "wchar")


def peak_bytes() -> int:
    """Memory at its peak, since :func:`forget_peak` or since the process began."""
    kilobytes = _number(_STATUS, "VmHWM")
    if kilobytes:
        return 1024 * kilobytes
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def forget_peak() -> int:
    """Let the peak begin anew, where Linux can; returns the memory in use."""
    with suppress(OSError):
        _CLEAR.write_text("5", encoding="ascii")
    return peak_bytes()


def _number(path: Path, name: str) -> int:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)
