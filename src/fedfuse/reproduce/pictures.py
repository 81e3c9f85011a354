"""Pictures of entries, drawn from finished runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedfuse.reproduce.cells import Cell
from fedfuse.reproduce.entry import Entry
from fedfuse.reproduce.store import Store


def draw_entry(path: Path, entry: Entry, cells: Sequence[Cell], seeds: Sequence[int], store: Store) -> bool:
    """Write the entry's picture, if it has one and its runs are there."""
    return False
