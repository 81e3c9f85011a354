"""How much memory there is."""

from __future__ import annotations

from pathlib import Path

MEMINFO = Path("/proc/meminfo")
LIMIT = Path("/sys/fs/cgroup/memory.max")
"""Of the container that this process is in."""


def free_memory() -> int | None:
    """Bytes that can be had without swapping; None where the system does not say."""
    try:
        lines = MEMINFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    free = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)
    return free if free is None else min(free, _limit() or free)


def is_lack_of_memory(error: BaseException) -> bool:
    """Whether Python or torch could not have what it asked for."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "allocate memory" in str(error))


def _limit() -> int | None:
    try:
        text = LIMIT.read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def in_gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"
