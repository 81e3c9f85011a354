"""Live progress of runs: bars in a terminal, one line per round anywhere else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as Remaining
from rich.table import Column
from rich.text import Text

from fedfuse.experiment.assembly import cautions, notes
from fedfuse.experiment.progress import Mishaps, accuracies, notice
from fedfuse.federation.events import Event

_STEPS = {
    "load data": "loading data",
    "clients": "clients train",
    "synthesise": "making inputs",
    "teachers": "teachers predict",
    "distil": "distilling",
}


class Bars(Progress):
    """Bars that fit 80 columns: a task's long field ``title`` stands above its bar, where it cuts nothing off."""

    def __init__(self, console: Console) -> None:
        columns = (
            TextColumn("{task.description}", table_column=Column(no_wrap=True, min_width=18)), BarColumn(bar_width=28),
            MofNCompleteColumn(table_column=Column(no_wrap=True, min_width=9)), TimeElapsedColumn(), Remaining(),
        )  # fmt: skip
        # A round may take hours, and what is left of a run is told from all of them.
        period, silent = math.inf, not console.is_terminal
        super().__init__(*columns, console=console, transient=True, speed_estimate_period=period, disable=silent)

    def begin(self, description: str, total: int, completed: int = 0, title: str = "") -> TaskID:
        """A task whose clock starts now: what is completed already says nothing about the time that the rest takes."""
        task = self.add_task(description, total=total, completed=completed, title=title)
        self.advance(task, 0)
        return task

    def get_renderables(self) -> Iterator[RenderableType]:
        for task in self.tasks:
            if title := task.fields.get("title"):
                yield Text(title, style="bold")
            yield self.make_tasks_table([task])


class Cautions:
    """What runs' facts note and caution against, each sentence said once however many runs do."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.told: set[str] = set()

    def __call__(self, facts: Mapping[str, Any]) -> None:
        for sentence in notes(facts):
            if self._is_new(sentence):
                self.console.print(Text(sentence), soft_wrap=not self.console.is_terminal)
        for sentence in cautions(facts):
            if self._is_new(sentence):
                warn(self.console, sentence)

    def _is_new(self, sentence: str) -> bool:
        is_new = sentence not in self.told
        self.told.add(sentence)
        return is_new


def warn(console: Console, sentence: str) -> None:
    """One sentence in yellow; in a file one line, however long, and nothing in it is taken for a colour."""
    console.print(Text(sentence, style="yellow"), soft_wrap=not console.is_terminal)


class RunProgress:
    """A listener that shows one run after another."""

    def __init__(self, console: Console, runs: int = 1, finished: int = 0, caution: Cautions | None = None) -> None:
        self.console = console
        self.runs = runs
        self.finished = finished
        self.label = ""
        self.total = 0
        self.bars = Bars(console)
        self.all_runs: TaskID | None = None
        self.caution = caution or Cautions(console)
        self.mishaps = Mishaps()

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self.bars.start()
            if self.runs > 1:
                self.all_runs = self.bars.begin("runs", self.runs, self.finished)
        return self

    def __exit__(self, *exception: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self.console.is_terminal:
            self.bars.stop()

    def begin(self, label: str, rounds: int) -> None:
        """The next run starts."""
        self.label, self.total, self.mishaps = label, rounds, Mishaps()
        self.rounds = self.bars.add_task("  rounds", total=rounds, title=label)
        self.step = self.bars.add_task("  starting", total=None)
        self.doing = ""

    def end(self) -> None:
        """The run is over."""
        self.bars.remove_task(self.rounds)
        self.bars.remove_task(self.step)
        if self.all_runs is not None:
            self.bars.advance(self.all_runs)

    def __call__(self, event: Event) -> None:
        if event["event"] == "tick":
            self._show_step(event["what"], event["done"], event["total"])
        elif event["event"] in ("run_started", "run_resumed"):
            self.caution(event)
            self._note(event)
        elif event["event"] == "round_started":
            self.bars.update(self.rounds, completed=event["round"] - 1)
            self.bars.advance(self.rounds, 0)  # the clock of the first round here, whichever it is
        elif event["event"] == "round_finished":
            title = f"{self.label}: {accuracies(event)}"
            self.bars.update(self.rounds, completed=event["round"], title=title)
            if not self.console.is_terminal:
                line = f"{self.label}: round {event['round']}/{self.total} {accuracies(event)}"
                self.console.print(line, highlight=False, soft_wrap=True)
        elif sentence := self.mishaps(event):
            warn(self.console, sentence)
        else:
            self._note(event)

    def _note(self, event: Event) -> None:
        """What a run decided by itself; however many runs decide the same, it is said once."""
        sentence = notice(event)
        if sentence and sentence not in self.caution.told:
            self.caution.told.add(sentence)
            self.console.print(sentence, highlight=False, soft_wrap=True)

    def _show_step(self, what: str, done: int, total: int) -> None:
        """Each step has a clock of its own."""
        if what != self.doing:
            self.doing = what
            self.bars.reset(self.step, description=f"  {_STEPS.get(what, what)}", total=total)
            self.bars.advance(self.step, 0)
        self.bars.update(self.step, completed=done, total=total)
