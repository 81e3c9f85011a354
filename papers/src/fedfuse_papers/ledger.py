"""A table as printed and as measured: rows, claims, and what is still missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from fedfuse import Provenance, Spread
from fedfuse.plugins import dumps, write_text
from fedfuse_papers.cells import Cell
from fedfuse_papers.claims import Claim, Verdict, judge
from fedfuse_papers.entry import Entry, Labels, ScaleName
from fedfuse_papers.numbers import Printed, printed
from fedfuse_papers.store import Measured, Store

SMOKE = "at scale smoke cells only show that they run; their numbers mean nothing beside the printed ones"


@dataclass(frozen=True)
class Row:
    """One cell, theirs and ours."""

    labels: Labels
    printed: Printed | None
    values: dict[int, Measured]
    """By seed, of the finished runs."""
    runs: dict[int, str]
    """The names of their folders."""

    @property
    def ours(self) -> Spread | None:
        return Spread.of([measured.value for measured in self.values.values()]) if self.values else None

    @property
    def is_bound(self) -> bool:
        """Whether some seed never reached the target, so that the mean is a lower bound."""
        return any(measured.is_bound for measured in self.values.values())

    @property
    def is_near(self) -> bool | None:
        """Whether our mean is within two of the printed deviations; None if one of them is not known."""
        if self.difference is None or self.printed is None or self.printed.std is None:
            return None
        return abs(self.difference) <= 2 * self.printed.std

    @property
    def difference(self) -> float | None:
        return self.ours.mean - self.printed.value if self.ours and self.printed else None


@dataclass(frozen=True)
class Ledger:
    """One entry at one scale."""

    name: str
    title: str
    scale: ScaleName
    unit: str
    seeds: list[int]
    rows: list[Row]
    verdicts: list[Verdict]
    notes: str
    births: list[Provenance]
    """Of all its runs, each kind once, in the order of their days."""
    cautions: list[str] = field(default_factory=list)
    """What its runs' facts say that a reader should know, each sentence once."""

    @property
    def finished(self) -> int:
        """Cells with all their seeds."""
        return sum(len(row.values) == len(self.seeds) for row in self.rows)

    def save(self, store: Store) -> None:
        """The record that ``--show`` and other tools read."""
        write_text(store.table(self.name, self.scale, ".json"), dumps(asdict(self), indent=2) + "\n")


def ledger(
    name: str,
    entry: Entry,
    claims: Sequence[Claim],
    cells: Sequence[Cell],
    scale: ScaleName,
    seeds: list[int],
    store: Store,
) -> Ledger:
    """Whatever is finished of these cells and seeds."""
    rows = [_row(entry, cell, seeds, store) for cell in cells]
    by_labels = {tuple(row.labels.items()): row for row in rows}
    verdicts = [
        _verdict(claim, by_labels[tuple(higher.items())], by_labels[tuple(lower.items())])
        for claim in claims
        for higher, lower in claim.pairs([cell.labels for cell in cells])
    ]
    finished = [(cell, seed) for cell, row in zip(cells, rows, strict=True) for seed in row.values]
    results = [result for one in finished if (result := store.run(*one))]
    births = dict.fromkeys(birth for result in results for birth in result.provenance)
    by_day = sorted(births, key=lambda birth: birth.day)
    units = {"rounds" if cell.reading.what == "rounds_to_target" else "%" for cell in cells}
    unit = " or ".join(sorted(units))
    about_data = (sentence for result in results for sentence in result.cautions)
    said = list(dict.fromkeys([*([SMOKE] if scale == "smoke" else []), *about_data]))
    return Ledger(name, entry.title, scale, unit, seeds, rows, verdicts, entry.notes, by_day, said)


def _row(entry: Entry, cell: Cell, seeds: list[int], store: Store) -> Row:
    found = {seed: store.measure(cell, seed) for seed in seeds}
    measured = {seed: value for seed, value in found.items() if value is not None}
    runs = {seed: store.folder(cell.experiment(seed)).name for seed in measured}
    theirs = printed(cell.entry.split("/")[0], entry.printed, cell.labels) if entry.printed else None
    return Row(cell.labels, theirs, measured, runs)


def _verdict(claim: Claim, higher: Row, lower: Row) -> Verdict:
    values = [{seed: measured.value for seed, measured in row.values.items()} for row in (higher, lower)]
    interval, answer = judge(values[0], values[1], claim.by)
    theirs = higher.printed.value - lower.printed.value if higher.printed and lower.printed else None
    return Verdict(claim.says, higher.labels, lower.labels, theirs, interval, answer)
