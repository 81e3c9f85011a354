"""Progress of one stage after another: a bar with the remaining time, or a few lines in a file."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import TaskID

from fedfuse.cli.progress import Bars

LINES = 4
"""How many lines a stage prints where there is no terminal."""
STAGES = {"teachers": "models answer", "distil": "student learns", "files": "files merge", "synthesise": "inputs made"}


class Stages:
    """Progress of one stage after another: a bar with the remaining time, or a few lines in a file."""

    def __init__(self, console: Console, quiet: bool) -> None:
        self.console, self.quiet = console, quiet
        self.bars = Bars(Console(quiet=True) if quiet else console)
        self.stage, self.told = "", 0
        self.task: TaskID | None = None

    def __enter__(self) -> Self:
        if self.console.is_terminal and not self.quiet:
            self.bars.start()
        return self

    def __exit__(self, *exception: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self.console.is_terminal and not self.quiet:
            self.bars.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        title = STAGES.get(what, what)
        if what != self.stage:
            if self.task is not None:
                self.bars.remove_task(self.task)
            self.stage, self.told = what, 0
            self.task = self.bars.begin(title, total, done)
        assert self.task is not None, "a stage has begun"
        self.bars.update(self.task, completed=done, total=total)
        if not self.quiet and not self.console.is_terminal and total and done * LINES // total > self.told:
            self.told = done * LINES // total
            self.console.print(f"{title} {done}/{total}", highlight=False)
