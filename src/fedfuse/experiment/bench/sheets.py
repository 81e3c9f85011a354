"""What a bench came to, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterator

from fedfuse.experiment.bench.measure import Benchmark
from fedfuse.experiment.bench.ratios import Table
from fedfuse.report.sheet import Sheet


def sheet(table: Table) -> Sheet:
    """One workload."""
    rows = [((line.label,), (line.text(),)) for line in table.lines]
    return Sheet(f"{table.code}  {table.title}", ("contender",), ("ratio, or what the unit says",), rows)


def remarks(table: Table) -> Iterator[str]:
    """What the ratios mean, what fedfuse chose, and who has no number."""
    yield f"Says: {table.meaning}."
    for settings, contenders in _by_settings(table).items():
        yield f"Chosen by {contenders}: {settings}."
    yield from (f"No number for {failure}." for failure in table.failures)


def markdown(benchmark: Benchmark) -> str:
    """All workloads, for the page of results."""
    return "\n\n".join([_about(benchmark), *(_section(table) for table in benchmark.tables)])


def _about(benchmark: Benchmark) -> str:
    facts = benchmark.facts
    commit = (facts["commit"] or "of a release")[:7]
    return (
        f"Measured on {facts['date']} with fedfuse {facts['fedfuse']} (commit {commit}), torch {facts['torch']}, "
        f"Python {facts['python']}, on {facts['machine']}; {facts['turns_each']} turns, size {facts['size']}."
    )


def _section(table: Table) -> str:
    rows = (f"| {line.label} | {line.text()} |" for line in table.lines)
    head = (f"### {table.code}: {table.title}", "", "| contender | ratio, or what the unit says |", "|---|---|")
    return "\n".join([*head, *rows, "", *(f"{remark}  " for remark in remarks(table))]).rstrip()


def _by_settings(table: Table) -> dict[str, str]:
    """Contenders that chose the same are named together."""
    together: dict[str, list[str]] = {}
    for contender, settings in table.chosen.items():
        together.setdefault(settings, []).append(contender)
    return {settings: _listed(contenders) for settings, contenders in together.items()}


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{'; '.join(names[:-1])} and {names[-1]}"
