"""Live progress of runs: bars in a terminal, one line per round anywhere else."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as Remaining

from fedfuse.federation.events import Event

_STEPS = {
    "load data": "loading data",
    "clients": "clients train",
    "teachers": "teachers predict",
    "distil": "distilling",
}


class RunProgress:
    """A listener that shows one run after another."""

    def __init__(self, console: Console, runs: int = 1) -> None:
        self.console = console
        self.runs = runs
        self.label = ""
        self.total = 0
        self.bars = Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=28), MofNCompleteColumn(),
            TimeElapsedColumn(), Remaining(), TextColumn("{task.fields[note]}"), console=console, transient=True,
        )  # fmt: skip
        self.all_runs: TaskID | None = None

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self.bars.start()
            if self.runs > 1:
                self.all_runs = self.bars.add_task("runs", total=self.runs, note="")
        return self

    def __exit__(self, *exception: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self.console.is_terminal:
            self.bars.stop()

    def begin(self, label: str, rounds: int) -> None:
        """The next run starts."""
        self.label, self.total = label, rounds
        self.rounds = self.bars.add_task(f"[bold]{label}", total=rounds, note="")
        self.step = self.bars.add_task("  starting", total=None, note="")

    def end(self) -> None:
        """The run is over."""
        self.bars.remove_task(self.rounds)
        self.bars.remove_task(self.step)
        if self.all_runs is not None:
            self.bars.advance(self.all_runs)

    def __call__(self, event: Event) -> None:
        if event["event"] == "tick":
            what = _STEPS.get(event["what"], event["what"])
            self.bars.update(self.step, description=f"  {what}", completed=event["done"], total=event["total"])
        elif event["event"] == "round_finished":
            self.bars.update(self.rounds, completed=event["round"], note=_accuracies(event))
            if not self.console.is_terminal:
                self.console.print(
                    f"{self.label}: round {event['round']}/{self.total} {_accuracies(event)}", highlight=False
                )
        elif event["event"] == "update_refused":
            self.console.print(f"[yellow]client {event['client']} was refused: {event['reason']}[/]", highlight=False)
        elif event["event"] in ("client_retried", "work_retried"):
            what = event["what"] if "what" in event else f"client {event['client']}"
            self.console.print(f"[yellow]{what} was retried: {event['reason']}[/]", highlight=False)


def _accuracies(event: Event) -> str:
    parts = []
    for name, record in event["prototypes"].items():
        if record["accuracy"] is not None:
            parts.append(f"{name} {100 * record['accuracy']:.1f} %")
    if event["ensemble_accuracy"] is not None:
        parts.append(f"ensemble {100 * event['ensemble_accuracy']:.1f} %")
    return ", ".join(parts)
