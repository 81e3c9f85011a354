"""What a store has of one family on one dataset."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.attacks.grid import FAMILIES, NOBODY, REFUSED, Cell, Family
from benchmarks.attacks.store import Store


@dataclass(frozen=True)
class Measured:
    """Numbers in percent, means over seeds; None where nothing was measured."""

    store: Store
    data: str
    name: str

    @property
    def family(self) -> Family:
        return FAMILIES[self.name]

    @property
    def seeds(self) -> str:
        number = self.store.seeds(self.family.cells(self.data, self.name))
        return "one seed" if number == 1 else f"mean of {number} seeds"

    def honest(self, partition: str, defence: str) -> float | None:
        return self.under(partition, defence, NOBODY, 0.0)

    def under(self, partition: str, defence: str, attack: str, share: float, what: str = "accuracy") -> float | None:
        """What a defence leaves under an attack."""
        return self.store.mean(Cell(self.data, partition, self.name, defence, attack, share), what)

    def worst(self, partition: str, defence: str, share: float) -> tuple[float, str] | None:
        """What the worst of all attacks leaves, and which it is, if all were measured."""
        attacks = [attack for attack in self.family.attacks if attack not in REFUSED]
        left = [(self.under(partition, defence, attack, share), attack) for attack in attacks]
        known = [(accuracy, attack) for accuracy, attack in left if accuracy is not None]
        return min(known) if len(known) == len(attacks) else None

    def shares(self, partition: str) -> list[float]:
        """Those that were measured for every defence."""
        return [
            share
            for share in self.family.shares
            if all(self.worst(partition, defence, share) for defence in self.family.defences)
        ]
