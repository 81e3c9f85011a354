"""The tables of docs/robustness.md, in its own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.attacks.grid import FAMILIES, Cell, Family
from benchmarks.attacks.store import Store


def text(store: Store, data: str, families: tuple[str, ...], seeds: int) -> str:
    """All tables of a dataset, in Markdown."""
    blocks = []
    for name in families:
        family = FAMILIES[name]
        for partition in family.partitions:
            rows = list(
                _by_default(store, data, partition, name, family)
                if name.startswith("one-")
                else _defences(store, data, partition, name, family)
            )
            if len(rows) > 2:
                blocks.append(f"#### {data}, {partition}: {family.title}\n\n" + "\n".join(rows))
    said = (
        f"Test accuracy in percent after the last round, mean of {seeds} seeds."
        if seeds > 1
        else ("Test accuracy in percent after the last round, one seed.")
    )
    return "\n\n".join([said, *blocks])


def _by_default(store: Store, data: str, partition: str, name: str, family: Family) -> Iterator[str]:
    """A row for each attack: without bounds and with them, and what the bounds leave of its cost."""
    yield "| attack | " + " | ".join(family.defences) + " | cost with bounds |"
    yield "|---|" + "---|" * (len(family.defences) + 1)
    honest = {defence: store.mean(Cell(data, partition, name, defence, "none", 0.0)) for defence in family.defences}
    yield _row(["nobody attacks", *map(_number, honest.values()), ""])
    best = next(iter(honest.values()))
    for attack in family.attacks:
        found = [store.mean(Cell(data, partition, name, defence, attack, 0.1)) for defence in family.defences]
        if None in found or best is None:
            continue
        yield _row([attack, *map(_number, found), f"{best - (found[-1] or 0):.1f}"])


def _defences(store: Store, data: str, partition: str, name: str, family: Family) -> Iterator[str]:
    """A row for each defence: the worst attack of each share, and by attack where most attack."""
    shares, most = family.shares, family.shares[-1]
    worst = [f"worst at {share:.0%}" for share in shares]
    yield "| defence | nobody attacks | " + " | ".join([*worst, *(f"{a}, {most:.0%}" for a in family.attacks)]) + " |"
    yield "|---|" + "---|" * (1 + len(shares) + len(family.attacks))
    for defence in family.defences:
        found = {
            (attack, share): store.mean(Cell(data, partition, name, defence, attack, share))
            for attack in family.attacks
            for share in shares
        }
        honest = store.mean(Cell(data, partition, name, defence, "none", 0.0))
        if honest is None or any(number is None for number in found.values()):
            continue
        cells = [defence, _number(honest), *(_worst(found, share) for share in shares)]
        yield _row([*cells, *(_number(found[attack, most]) for attack in family.attacks)])


def backdoors(store: Store, data: str, families: tuple[str, ...]) -> str:
    """How often the stamp opens the model, by defence and share."""
    blocks = []
    for name in families:
        family = FAMILIES[name]
        if "backdoor" not in family.attacks or name.startswith("one-"):
            continue
        for partition in family.partitions:
            lines = ["| defence | " + " | ".join(f"{share:.0%}" for share in family.shares) + " |"]
            lines.append("|---|" + "---|" * len(family.shares))
            for defence in family.defences:
                rates = [
                    store.mean(Cell(data, partition, name, defence, "backdoor", share), "success")
                    for share in family.shares
                ]
                if None not in rates:
                    lines.append(_row([defence, *map(_number, rates)]))
            if len(lines) > 2:
                blocks.append(
                    f"#### {data}, {partition}: how often the backdoor opens, {family.title}\n\n" + "\n".join(lines)
                )
    return "\n\n".join(blocks)


def _worst(found: Mapping[tuple[str, float], float | None], share: float) -> str:
    number, attack = min(
        (number, attack) for (attack, own), number in found.items() if own == share and number is not None
    )
    return f"{number:.1f} ({attack})"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
