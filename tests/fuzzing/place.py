"""Where targets put files: in memory, as long as the harness runs."""

from __future__ import annotations

import tempfile
from pathlib import Path


def place(name: str) -> Path:
    """A path for a file of this name."""
    folder = Path(tempfile.gettempdir()) / "fuzzing"
    folder.mkdir(exist_ok=True)
    return folder / name


def written(name: str, content: bytes) -> Path:
    path = place(name)
    path.write_bytes(content)
    return path
