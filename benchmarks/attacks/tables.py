"""Tables of what was measured: the worst attacks for docs/robustness.md, every cell for docs/results/attacks.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.attacks.grid import EVERYWHERE, FAMILIES, GONE
from benchmarks.attacks.measured import Measured
from benchmarks.attacks.store import Store

ALONE = 0.1
"""The share that one client of ten is."""
ONE_OF_TEN = ", one client of ten attacks"


def summary(store: Store, data: str) -> str:
    """What the worst of all attacks costs: one client of ten with the defaults, several with every defence."""
    families = _families(store, data)
    alone = [row for one in families if one.family.is_by_default for row in _worst_of_one(one)]
    blocks = [_table(f"{data}: one client of ten attacks, with the defaults", ["method", "", *EVERYWHERE], alone)]
    blocks += [_worst_by_defence(one) for one in families if not one.family.is_by_default]
    return "\n\n".join(filter(None, blocks))


def everything(store: Store, data: str) -> str:
    """A number for every attack with every defence."""
    blocks: list[str] = []
    for one in _families(store, data):
        if one.family.is_by_default:
            blocks.append(_by_default(one))
            continue
        for partition in one.family.partitions:
            blocks += [_by_defence(one, partition, share) for share in one.shares(partition)]
            blocks.append(_backdoors(one, partition))
    return "\n\n".join(filter(None, blocks))


def _worst_of_one(one: Measured) -> Iterator[list[str]]:
    """The worst attack costs what; beside its mere absence what; without and with bounds, where nobody attacks."""
    taken, bounded = one.family.defences
    method = one.family.title.removesuffix(ONE_OF_TEN)
    worst = {partition: one.worst(partition, bounded, ALONE) for partition in one.family.partitions}
    honest = {partition: one.honest(partition, taken) for partition in worst}
    gone = {partition: one.under(partition, bounded, GONE, ALONE) for partition in worst}
    yield [f"{method}, {one.seeds}", "costs most", *(_cost(honest[p], own) for p, own in worst.items())]
    yield ["", "... beside `refused`", *(_cost(gone[p], own) for p, own in worst.items())]
    yield ["", "nobody attacks", *(_both(honest[p], one.honest(p, bounded)) for p in worst)]


def _worst_by_defence(one: Measured) -> str:
    """A row for each defence: what the worst attack of each share leaves, by division of the data."""
    shares = {partition: one.shares(partition) for partition in one.family.partitions}
    if not any(shares.values()):
        return ""
    head = ["defence"]
    for partition, own in shares.items():
        head += [f"{partition}: nobody", *(f"{share:.0%}" for share in own)]
    rows = [
        [defence, *(cell for partition, own in shares.items() for cell in _of_defence(one, partition, defence, own))]
        for defence in one.family.defences
    ]
    return _table(f"{one.data}: {one.family.title}, {one.seeds}", head, rows)


def _of_defence(one: Measured, partition: str, defence: str, shares: Iterable[float]) -> Iterator[str]:
    yield _number(one.honest(partition, defence))
    for share in shares:
        worst = one.worst(partition, defence, share)
        yield f"{worst[0]:.1f} ({worst[1]})" if worst else ""


def _by_default(one: Measured) -> str:
    """A row for each attack: without bounds, with them, and what they leave of its cost, by division of the data."""
    taken, bounded = one.family.defences
    honest = {partition: one.honest(partition, taken) for partition in one.family.partitions}
    rows = [["nobody attacks", *(_both(accuracy, one.honest(p, bounded)) for p, accuracy in honest.items())]]
    for attack in one.family.attacks:
        left = {p: (one.under(p, taken, attack, ALONE), one.under(p, bounded, attack, ALONE)) for p in honest}
        rows.append([attack, *(_with_cost(*own, honest[p]) for p, own in left.items())])
    rows = [row for row in rows if any(row[1:])]
    return _table(f"{one.data}: {one.family.title}, {one.seeds}", ["attack", *honest], rows)


def _by_defence(one: Measured, partition: str, share: float) -> str:
    """A row for each defence, a column for each attack."""
    attacks = list(one.family.attacks)
    rows = [
        [
            defence,
            _number(one.honest(partition, defence)),
            *(_number(one.under(partition, defence, attack, share)) for attack in attacks),
        ]
        for defence in one.family.defences
    ]
    title = f"{one.data}, {partition}, {share:.0%} attack: {one.family.title}, {one.seeds}"
    return _table(title, ["defence", "nobody", *attacks], rows)


def _backdoors(one: Measured, partition: str) -> str:
    """How often the stamp opens the model, by defence and share."""
    shares = one.shares(partition) if "backdoor" in one.family.attacks else []
    rows = [
        [defence, *(_number(one.under(partition, defence, "backdoor", share, "success")) for share in shares)]
        for defence in one.family.defences
    ]
    title = f"{one.data}, {partition}: how often the backdoor opens, {one.family.title}, {one.seeds}"
    return _table(title, ["defence", *(f"{share:.0%}" for share in shares)], rows if shares else [])


def _families(store: Store, data: str) -> list[Measured]:
    """Those of which anything was measured."""
    return [
        Measured(store, data, name)
        for name, family in FAMILIES.items()
        if any(store.has(cell, 0) for cell in family.cells(data, name))
    ]


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """In Markdown, below its title; nothing where it has no rows."""
    lines = [_row(head), "|---" * len(head) + "|", *map(_row, rows)]
    return f"#### {title}\n\n" + "\n".join(lines) if rows else ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _cost(before: float | None, left: tuple[float, str] | None) -> str:
    return "" if before is None or left is None else f"{before - left[0]:.1f} ({left[1]})"


def _both(without: float | None, bounded: float | None) -> str:
    return "" if without is None or bounded is None else f"{without:.1f} / {bounded:.1f}"


def _with_cost(without: float | None, bounded: float | None, honest: float | None) -> str:
    both = _both(without, bounded)
    return f"{both} ({honest - bounded:.1f})" if both and honest is not None and bounded is not None else both
