"""Where a run comes from: the code and the machine, as far as they can be known."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from fedfuse.core.version import __version__

GIT_SECONDS = 10


@dataclass(frozen=True)
class Origin:
    """What stands in a run's log. It names no user, host or folder."""

    fedfuse: str
    commit: str | None
    """Of the checkout that the code was run from, with a trailing + if tracked files were changed; else null."""
    torch: str
    python: str
    machine: str

    def to_json(self) -> dict[str, str | None]:
        return asdict(self)


@cache
def origin() -> Origin:
    return Origin(__version__, commit(), version("torch"), platform.python_version(), machine())


def commit(package: Path = Path(__file__).parent.parent) -> str | None:
    """The commit of a checkout whose src/fedfuse is this package."""
    root = package.parent.parent
    if not (root / ".git").exists() or shutil.which("git") is None:
        return None
    head = _git(root, "rev-parse", "HEAD")
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return f"{head}+" if head and changed else head


def machine() -> str:
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()}"


def _processor() -> str:
    """What Linux says; elsewhere what Python knows."""
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, timeout=GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
