"""What was measured so far, a line for every cell and seed, so that an interrupted bench goes on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from benchmarks.attacks.grid import Cell
from benchmarks.attacks.play import Numbers


class Store:
    """A file of results; whoever wants them measured anew removes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[Cell, dict[int, Numbers]] = {}
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                self._enter(Cell(**entry["cell"]), entry["seed"], entry["numbers"])

    def has(self, cell: Cell, seed: int) -> bool:
        return seed in self.known.get(cell, {})

    def add(self, cell: Cell, seed: int, numbers: Numbers) -> None:
        self._enter(cell, seed, numbers)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"cell": asdict(cell), "seed": seed, "numbers": numbers})
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def _enter(self, cell: Cell, seed: int, numbers: Numbers) -> None:
        self.known.setdefault(cell, {})[seed] = numbers

    def mean(self, cell: Cell, what: str = "accuracy") -> float | None:
        """Over the seeds that are there."""
        values = [numbers[what] for numbers in self.known.get(cell, {}).values() if what in numbers]
        return sum(values) / len(values) if values else None

    def seeds(self, cells: Iterable[Cell]) -> int:
        """How many there are of every one of these, at least."""
        return min((len(self.known[cell]) for cell in cells if cell in self.known), default=0)
