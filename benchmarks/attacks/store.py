"""What was measured so far, a line for every cell and seed, so that an interrupted bench goes on."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from benchmarks.attacks.grid import Cell
from benchmarks.attacks.play import Numbers


class Store:
    """A file of results; whoever wants them measured anew removes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[tuple[Cell, int], Numbers] = {}
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                self.known[Cell(**entry["cell"]), entry["seed"]] = entry["numbers"]

    def add(self, cell: Cell, seed: int, numbers: Numbers) -> None:
        self.known[cell, seed] = numbers
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"cell": asdict(cell), "seed": seed, "numbers": numbers})
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def mean(self, cell: Cell, what: str = "accuracy") -> float | None:
        """Over the seeds that are there."""
        values = [numbers[what] for (own, _), numbers in self.known.items() if own == cell and what in numbers]
        return sum(values) / len(values) if values else None
