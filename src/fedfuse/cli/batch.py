"""Many runs as they happen: one after another as ``fedfuse run`` shows each, or a bar for each of several processes."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import TaskID

from fedfuse.cli.progress import Bars, Cautions, RunProgress
from fedfuse.experiment.comparison import Comparison
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
    """Runs in processes of their own, of which rounds are all that is heard."""

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        kind = event["event"]
        if kind == "study_started":
            self.bars = self.open.enter_context(Bars(self.console))
            self.all_runs = self.bars.begin("runs", event["runs"] - event["finished"])
            self.tasks = dict[str, TaskID]()
        elif kind == "study_run_started":
            label = event["run"]
            self.tasks[label] = self.bars.begin("  rounds", event["rounds"], event["done"], title=label)
        elif kind == "study_run_advanced":
            self.bars.update(self.tasks[event["run"]], completed=event["done"])
        elif kind in ("study_run_finished", "study_run_stopped"):
            self._end(event["run"], says_so=kind == "study_run_finished")

    def _end(self, label: str, says_so: bool) -> None:
        """Of a trial's run, whoever asked for the trial says how it ended."""
        self.bars.remove_task(self.tasks.pop(label))
        self.bars.advance(self.all_runs)
        if says_so and not self.console.is_terminal:
            self.console.print(f"{label}: finished", highlight=False, soft_wrap=True)


def batch_progress(console: Console, jobs: int) -> BatchProgress:
    """The listener for so many runs at a time."""
    return OneByOne(console) if jobs == 1 else SideBySide(console)
