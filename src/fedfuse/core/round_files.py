"""Files of rounds: ``round-000012.states`` is that of round 12, and a file with any other name is somebody else's."""

from __future__ import annotations

import re
from pathlib import Path

from fedfuse.core.files import names_in

_STEM = re.compile(r"round-([0-9]{6}|[1-9][0-9]{6,17})")


def path_of(folder: Path, number: int, suffix: str) -> Path:
    return folder / f"round-{number:06d}{suffix}"


def rounds_in(folder: Path, suffix: str) -> list[int]:
    """The rounds of which a folder has files, in order."""
    stems = (name.removesuffix(suffix) for name in names_in(folder) if name.endswith(suffix))
    return sorted(int(found[1]) for stem in stems if (found := _STEM.fullmatch(stem)))
