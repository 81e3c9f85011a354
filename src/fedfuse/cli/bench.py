"""``fedfuse bench``: how fast it is here."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from fedfuse.cli.console import console, print_facts, print_sheet

if TYPE_CHECKING:
    from fedfuse.experiment.bench.measure import Benchmark
    from fedfuse.experiment.bench.turns import Turn
    from fedfuse.experiment.bench.workloads.base import Contender, Workload


def bench(
    workloads: Annotated[list[str] | None, typer.Argument(metavar="WORKLOAD", help="only these (default: all)")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="fewer and smaller ones, less than a minute")] = False,
    turns: Annotated[int, typer.Option(min=1, help="of each contender; several show how much a ratio varies")] = 1,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="change a key of fedfuse's experiments")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="also write everything as JSON to this file")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of tables")] = False,
) -> None:
    """Measure fedfuse on this machine against loops written by hand. Takes a few minutes; do nothing else meanwhile."""
    from fedfuse.core.files import write_text
    from fedfuse.experiment.bench.measure import bench as measure

    with BenchProgress(Console(quiet=as_json)) as progress:
        done = measure(workloads or (), quick=quick, turns=turns, assignments=assignments or (), progress=progress)
    if out is not None:
        write_text(out, done.to_json() + "\n")
    if as_json:
        console.out(done.to_json(), highlight=False)
        return
    show(done)


def show(benchmark: Benchmark) -> None:
    """The tables with what they mean."""
    from fedfuse.experiment.bench.sheets import remarks, sheet

    for table in benchmark.tables:
        print_sheet(sheet(table))
        for remark in remarks(table):
            console.print(remark, highlight=False, markup=False)
        console.print()
    console.print(
        "A ratio is the time of a round divided by that of the plain loop in the same turn: below 1 is faster. "
        "Processor time on one core, wall time where it says all cores; the median of the turns [smallest..largest].",
        highlight=False,
        markup=False,
    )
    facts = benchmark.facts
    if facts["size"] != "full":
        console.print("These are small versions of the workloads; docs/performance.md has the whole ones.")
    print_facts(machine=f"{facts['machine']}, {facts['cores']} in use", torch=facts["torch"], date=facts["date"])


class BenchProgress:
    """A line for each turn; in a terminal also whose turn it is."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.status = console.status("starting")
        self.began = time.monotonic()

    def __enter__(self) -> BenchProgress:
        if self.console.is_terminal:
            self.status.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.status.stop()

    def begins(self, workload: Workload, number: int, contender: Contender) -> None:
        self.began = time.monotonic()
        self.status.update(f"{workload.code}, turn {number + 1}: {contender.name}")

    def ends(self, turn: Turn, was_kept: bool) -> None:
        taken = "kept" if was_kept else f"{time.monotonic() - self.began:.0f} s"
        line = f"{turn.workload} turn {turn.number + 1}  {turn.contender:<36} {turn.failure or taken}"
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)
