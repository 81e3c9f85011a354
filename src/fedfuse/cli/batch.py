"""Many runs as they happen: one after another as ``fedfuse run`` shows each, or a bar for each of several processes."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import TaskID

from fedfuse.cli.progress import Bars, Cautions, RunProgress, is_live
from fedfuse.experiment.comparison import Comparison
from fedfuse.experiment.course import Course, left_of_all
from fedfuse.experiment.progress import accuracies
from fedfuse.federation.events import Event


class BatchProgress:
    """A listener of a comparison; ``comparison`` is what it came to, as far as it was finished."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.caution = Cautions(console)
        self.comparison: Comparison | None = None
        self.open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.open.close()

    def __call__(self, event: Event) -> None:
        if event["event"] in ("study_run_found", "study_run_finished"):
            self.caution(event["summary"])
        if event["event"] == "study_concluded":
            self.comparison = event["comparison"]


class OneByOne(BatchProgress):
    """Runs in this process."""

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        kind = event["event"]
        if kind == "study_started":
            shown = RunProgress(self.console, event["runs"], event["finished"], self.caution)
            self.run = self.open.enter_context(shown)
        elif kind == "study_run_started":
            self.run.begin(event["run"], event["rounds"])
        elif kind in ("study_run_finished", "study_run_stopped"):
            self.run.end()
        elif not kind.startswith("study_"):
            self.run(event)


class SideBySide(BatchProgress):
    """Runs in processes of their own, of which finished rounds are all that is heard."""

    def __init__(self, console: Console, jobs: int) -> None:
        super().__init__(console)
        self.jobs, self.waiting = jobs, 0
        self.courses: dict[str, Course] = {}
        self.took: list[float] = []

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        kind = event["event"]
        if kind == "study_started":
            self.bars = self.open.enter_context(Bars(self.console))
            self.waiting = event["runs"] - event["finished"]
            self.all_runs = self.bars.begin("runs", self.waiting, left=self._left)
            self.tasks = dict[str, TaskID]()
        elif kind == "study_run_started":
            label = event["run"]
            course = self.courses[label] = Course(label, event["rounds"], self.bars.get_time)
            course.done, self.waiting = event["done"], self.waiting - 1
            task = self.bars.begin("  rounds", event["rounds"], event["done"], title=course, left=course.left)
            self.tasks[label] = task
        elif kind == "study_run_advanced":
            self._advance(event)
        elif kind in ("study_run_finished", "study_run_stopped"):
            self._end(event["run"], says_so=kind == "study_run_finished")

    def _advance(self, event: Event) -> None:
        """Of rounds that were finished since, the latest is told."""
        course, latest = self.courses[event["run"]], event.get("latest")
        if latest and event["done"] > course.done:
            course.ends(latest, float(latest["seconds"]))
            if not is_live(self.console):
                line = f"{course.label}: round {latest['round']}/{course.rounds} {accuracies(latest)}"
                self.console.print(line, highlight=False, soft_wrap=True)
        self.bars.update(self.tasks[event["run"]], completed=event["done"])

    def _left(self) -> float | None:
        return left_of_all(list(self.courses.values()), self.took, max(0, self.waiting), self.jobs)

    def _end(self, label: str, says_so: bool) -> None:
        """Of a trial's run, whoever asked for the trial says how it ended."""
        self.took.append(self.courses.pop(label).took)
        self.bars.remove_task(self.tasks.pop(label))
        self.bars.advance(self.all_runs)
        if says_so and not is_live(self.console):
            self.console.print(f"{label}: finished", highlight=False, soft_wrap=True)


def batch_progress(console: Console, jobs: int) -> BatchProgress:
    """The listener for so many runs at a time."""
    return OneByOne(console) if jobs == 1 else SideBySide(console, jobs)
