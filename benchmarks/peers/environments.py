"""An environment for each peer, below the bench's folder: made and filled by the bench itself, and kept."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from benchmarks.peers.peer import Peer

SECONDS = 1200
"""In which an installation must be done."""


class InstallationError(Exception):
    """A peer that cannot be installed; the message is one sentence."""


def python_of(peer: Peer, folder: Path, tell: Callable[[str], None]) -> Path:
    """The interpreter of an environment that has the peer and our version of torch, which is installed first."""
    environment = folder / "environments" / peer.name.lower()
    python = environment / "bin" / "python"
    torch = f"torch=={version('torch').partition('+')[0]}"
    if not _has(python, peer.requirement, torch):
        tell(f"installing {peer.requirement}")
        _run([sys.executable, "-m", "venv", "--clear", str(environment)])
        pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        _run([*pip, torch])
        _run([*pip, torch, peer.requirement])
    return python


def _has(python: Path, *requirements: str) -> bool:
    """Whether these very versions are there."""
    wanted = [requirement.partition("[")[0].partition("==")[0] for requirement in requirements]
    code = f"from importlib.metadata import version; print([version(name) for name in {wanted!r}])"
    try:
        done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return all(f"'{requirement.partition('==')[2]}" in done.stdout for requirement in requirements)


def _run(command: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, env=environment)
    except subprocess.TimeoutExpired:
        raise InstallationError(f"its installation took longer than {SECONDS} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["pip said nothing"]
        raise InstallationError(f"it cannot be installed: {lines[-1][:160]}")
