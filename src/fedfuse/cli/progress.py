"""Live progress of runs: bars in a terminal, one line per round anywhere else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as Remaining
from rich.table import Column
from rich.text import Text

from fedfuse.experiment.assembly import cautions, notes
from fedfuse.experiment.course import Course, left_of_all
from fedfuse.experiment.progress import STEPS, Mishaps, accuracies, notice
from fedfuse.federation.events import Event
from fedfuse.report.remaining import clock


def is_live(console: Console) -> bool:
    """Whether bars can move there: neither in a file nor in a terminal that only prints."""
    return console.is_terminal and not console.is_dumb_terminal


def left_of(task: Task) -> float | None:
    """Seconds, by its field ``left`` if it has one, else by how it went so far."""
    known = task.fields.get("left")
    return task.time_remaining if known is None else known()


class Left(Remaining):
    """What is left; ``<`` before it if it may be less."""

    def render(self, task: Task) -> Text:
        seconds = None if task.total is None else left_of(task)
        mark = "<" if task.fields.get("at_most") else ""
        return Text("-:--:--" if seconds is None else f"{mark}{clock(seconds)}", style="progress.remaining")


class Bars(Progress):
    """Bars that fit 80 columns: a task's long field ``title`` stands above its bar, where it cuts nothing off."""

    def __init__(self, console: Console) -> None:
        columns = (
            TextColumn("{task.description}", table_column=Column(no_wrap=True, min_width=18)), BarColumn(bar_width=28),
            MofNCompleteColumn(table_column=Column(no_wrap=True, min_width=9)), TimeElapsedColumn(), Left(),
        )  # fmt: skip
        # A round may take hours, and what is left of a run is told from all of them.
        period, silent = math.inf, not is_live(console)
        super().__init__(*columns, console=console, transient=True, speed_estimate_period=period, disable=silent)

    def begin(self, description: str, total: int, completed: int = 0, **fields: Any) -> TaskID:
        """A task whose clock starts now: what is completed already says nothing about the time that the rest takes."""
        task = self.add_task(description, total=total, completed=completed, **fields)
        self.advance(task, 0)
        return task

    def get_renderables(self) -> Iterator[RenderableType]:
        for task in self.tasks:
            if title := task.fields.get("title"):
                words = title if isinstance(title, str) else self._title(title)
                yield Text(words, style="bold", no_wrap=True, overflow="ellipsis")
            yield self.make_tasks_table([task])

    def _title(self, course: Course) -> str:
        """For the width that the terminal has now."""
        return course.title(self.console.width, not self.console.encoding.lower().startswith("utf"))


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
        self.course: Course | None = None
        self.took: list[float] = []
        """Seconds of the runs that are over."""
        self.bars = Bars(console)
        self.all_runs: TaskID | None = None
        self.caution = caution or Cautions(console)
        self.mishaps = Mishaps()

    def __enter__(self) -> Self:
        if is_live(self.console):
            self.bars.start()
            if self.runs > 1:
                self.all_runs = self.bars.begin("runs", self.runs, self.finished, left=self._left)
        return self

    def __exit__(self, *exception: type[BaseException] | BaseException | TracebackType | None) -> None:
        if is_live(self.console):
            self.bars.stop()

    def begin(self, label: str, rounds: int, at_most: bool = False) -> None:
        """The next run starts."""
        self.course, self.mishaps = Course(label, rounds, self.bars.get_time, at_most), Mishaps()
        course = self.course
        self.rounds = self.bars.add_task("  rounds", total=rounds, title=course, left=course.left, at_most=at_most)
        self.step = self.bars.add_task("  starting", total=None)
        self.doing = ""

    def end(self) -> None:
        """The run is over."""
        self.bars.remove_task(self.rounds)
        self.bars.remove_task(self.step)
        if self.course is not None:
            self.took.append(self.course.took)
            self.course = None
        if self.all_runs is not None:
            self.bars.advance(self.all_runs)

    def __call__(self, event: Event) -> None:
        if event["event"] == "tick":
            self._show_step(event["what"], event["done"], event["total"])
        elif event["event"] in ("run_started", "run_resumed"):
            self.caution(event)
            self._note(event)
        elif event["event"] == "round_started":
            self._course.begins(event["round"])
            self.bars.update(self.rounds, completed=event["round"] - 1)
            self.bars.advance(self.rounds, 0)  # the clock of the first round here, whichever it is
        elif event["event"] == "round_finished":
            self._course.ends(event)
            self.bars.update(self.rounds, completed=event["round"])
            if event["round"] == self._course.rounds:
                self._finish()
            if not is_live(self.console):
                course = self._course
                line = f"{course.label}: round {event['round']}/{course.rounds} {accuracies(event)}"
                self.console.print(line, highlight=False, soft_wrap=True)
        elif sentence := self.mishaps(event):
            warn(self.console, sentence)
        else:
            self._note(event)

    @property
    def _course(self) -> Course:
        assert self.course is not None, "a round belongs to a run that has begun"
        return self.course

    def _left(self) -> float | None:
        going = [self.course] if self.course is not None else []
        return left_of_all(going, self.took, self.runs - self.finished - len(self.took) - len(going))

    def _note(self, event: Event) -> None:
        """What a run decided by itself; however many runs decide the same, it is said once."""
        sentence = notice(event)
        if sentence and sentence not in self.caution.told:
            self.caution.told.add(sentence)
            self.console.print(sentence, highlight=False, soft_wrap=True)

    def _finish(self) -> None:
        """After the last round: pictures and models are written, and nobody knows how long that takes."""
        self.doing = ""
        self.bars.reset(self.step, description="  finishing", total=None)

    def _show_step(self, what: str, done: int, total: int) -> None:
        """Each step has a clock of its own."""
        if what != self.doing:
            self.doing = what
            self.bars.reset(self.step, description=f"  {STEPS.get(what, what)}", total=total)
            self.bars.advance(self.step, 0)
        self.bars.update(self.step, completed=done, total=total)
