"""Run folders below what a person names: one of them, or any folder that holds some."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedfuse.core.errors import RunFolderError
from fedfuse.experiment.finding import check_places
from fedfuse.federation.folder import RunFolder

DEEPEST = 5
"""Folders below the one that was named."""
MOST = 100_000
"""Entries that are looked at before the search is given up."""


def run_folders(places: Sequence[str | Path]) -> list[RunFolder]:
    """All runs, each once, in the order of the places and below them by name; numbers in names count as numbers."""
    found: dict[Path, RunFolder] = {}
    for place in map(Path, places):
        own = list(_Search(place).runs())
        if not own:
            raise RunFolderError(f"{place} holds no run; give a folder that fedfuse run or fedfuse compare has written")
        found |= {path.resolve(): RunFolder(path) for path in own if path.resolve() not in found}
    return list(found.values())


def is_run(folder: Path) -> bool:
    """Whether a run has begun there."""
    run = RunFolder(folder)
    return run.config.is_file() and any(os.path.lexists(path) for path in (run.events, run.summary))


class _Search:
    """A walk that ends: it follows no links, stays near the top, and looks at so many entries only."""

    def __init__(self, top: Path) -> None:
        check_places([top])
        self.top = top
        self.seen = 0

    def runs(self) -> Iterator[Path]:
        yield from self._below(self.top, 0)

    def _below(self, folder: Path, depth: int) -> Iterator[Path]:
        if is_run(folder):
            yield folder
        elif depth < DEEPEST:
            for name in sorted(self._folders(folder), key=by_number):
                yield from self._below(folder / name, depth + 1)

    def _folders(self, folder: Path) -> Iterator[str]:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self.seen += 1
                    if self.seen > MOST:
                        raise RunFolderError(
                            f"{self.top} holds more than {MOST:,} files and folders; give a folder nearer to the runs"
                        )
                    if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                        yield entry.name
        except PermissionError:  # somebody else's folder beside the runs
            return


def by_number(name: str) -> list[tuple[int, str]]:
    """A key that puts seed 2 before seed 10."""
    parts = re.findall(r"[0-9]{1,15}|[^0-9]+|[0-9]+", name)
    return [(int(part), "") if part.isdecimal() and len(part) <= 15 else (-1, part) for part in parts]
