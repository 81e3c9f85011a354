"""The tables of docs/robustness.md, in its own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.attacks.grid import FAMILIES, Cell, Family
from benchmarks.attacks.store import Store


def text(store: Store, data: str) -> str:
    """All tables of a dataset for which there are numbers, in Markdown."""
    blocks = []
    for name, family in FAMILIES.items():
        said = f"{family.title}, {_seeds(store.seeds(family.cells(data, name)))}"
        if name.startswith("one-"):
            blocks.append((f"{data}: {said}", list(_by_default(store, data, name, family))))
            continue
        for partition in family.partitions:
            rows = list(_defences(store, data, partition, name, family))
            blocks.append((f"{data}, {partition}: {said}", rows))
    return "\n\n".join(f"#### {title}\n\n" + "\n".join(rows) for title, rows in blocks if len(rows) > 3)


def _seeds(number: int) -> str:
    return "one seed" if number == 1 else f"mean of {number} seeds"


def _by_default(store: Store, data: str, name: str, family: Family) -> Iterator[str]:
    """A row for each attack: without bounds, with them, and what they leave of its cost, by division of the data."""

    def found(partition: str, attack: str, share: float) -> list[float | None]:
        return [store.mean(Cell(data, partition, name, defence, attack, share)) for defence in family.defences]

    honest = {partition: found(partition, "none", 0.0) for partition in family.partitions}
    yield "| attack | " + " | ".join(family.partitions) + " |"
    yield "|---|" + "---|" * len(family.partitions)
    yield _row(["nobody attacks", *(_both(own, None) for own in honest.values())])
    for attack in family.attacks:
        cells = [_both(found(partition, attack, 0.1), honest[partition][0]) for partition in family.partitions]
        if any(cells):
            yield _row([attack, *cells])


def _both(found: list[float | None], honest: float | None) -> str:
    without, bounded = found[0], found[-1]
    if without is None or bounded is None:
        return ""
    return f"{without:.1f} / {bounded:.1f}" + ("" if honest is None else f" ({honest - bounded:.1f})")


def _defences(store: Store, data: str, partition: str, name: str, family: Family) -> Iterator[str]:
    """A row for each defence: the worst attack of each share that is there, and all of them where most attack."""
    numbers = {
        defence: {
            (attack, share): store.mean(Cell(data, partition, name, defence, attack, share))
            for attack in family.attacks
            for share in family.shares
        }
        for defence in family.defences
    }
    there = [s for s in family.shares if all(own[a, s] is not None for own in numbers.values() for a in family.attacks)]
    if not there:
        return
    most = there[-1]
    worst = [f"worst at {share:.0%}" for share in there]
    yield "| defence | nobody attacks | " + " | ".join([*worst, *(f"{a}, {most:.0%}" for a in family.attacks)]) + " |"
    yield "|---|" + "---|" * (1 + len(there) + len(family.attacks))
    for defence, found in numbers.items():
        honest = store.mean(Cell(data, partition, name, defence, "none", 0.0))
        cells = [defence, _number(honest), *(_worst(found, share) for share in there)]
        yield _row([*cells, *(_number(found[attack, most]) for attack in family.attacks)])


def backdoors(store: Store, data: str) -> str:
    """How often the stamp opens the model, by defence and share."""
    blocks = []
    for name, family in FAMILIES.items():
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
