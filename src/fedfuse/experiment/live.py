"""What happens in runs, in one place of a notebook that is renewed as they go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Literal

from fedfuse.core.errors import ConfigError, shortened
from fedfuse.experiment.course import Course, left_of_all
from fedfuse.experiment.progress import STEPS, Kept, Lines
from fedfuse.experiment.surroundings import surroundings
from fedfuse.federation.events import Event, Listener
from fedfuse.report.page.html import Html, element
from fedfuse.report.remaining import clock

Progress = bool | Listener | Literal["auto"]
"""Whether and how runs are shown: lines, nothing, whatever is called with every event, or what fits the place."""
Shown = tuple[Html, str]
"""HTML, and a line for front ends that show none."""
PAUSE = 0.2
"""Seconds between two pictures; a front end that gets more of them lags behind."""
MOST_SENTENCES = 30
ENDS = {"run_found", "run_finished", "run_stopped", "study_concluded", "sweep_concluded"}
"""Events after which nothing may come that would show what was left out."""
BARS = 40


def listeners(progress: Progress, label: str = "") -> tuple[Listener, ...]:
    """Who hears of a run: nobody, one who prints, whoever is given, or whoever fits the place where Python runs."""
    if callable(progress):
        return (progress,)
    if not isinstance(progress, bool | None) and progress != "auto":
        raise ConfigError(f"progress={shortened(repr(progress), 60)}: give True, False, 'auto' or one function")
    if progress != "auto":
        return (Lines(label),) if progress else ()
    place = surroundings()
    if place == "notebook":
        return (Live(label),)
    return (Kept(label) if place == "script" else Lines(label),)


class Live:
    """A listener for notebooks: a bar for runs, one for the rounds of each that goes on, and sentences below."""

    def __init__(
        self, label: str = "", show: Callable[[Shown], None] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.label = label
        self.show = show or _Cell()
        self.clock = clock
        self.study: tuple[int, int] | None = None
        """Of several runs, how many are finished, and how many there are."""
        self.runs: dict[str, _Run] = {}
        self.took: list[float] = []
        """Seconds of the runs that were finished here."""
        self.sentences: list[str] = []
        self.lines = Lines(label, self.sentences.append)
        self._shown_at: float | None = None

    def __call__(self, event: Event) -> None:
        name = event["event"]
        label = event.get("run", self.label)
        if name == "study_started":
            self.study = (event["finished"], event["runs"])
        elif name == "study_run_started":
            self._run(label).begin(event["rounds"], event["done"])
        elif name == "study_run_advanced":
            self._run(label).advance(event["done"], event.get("latest"))
        elif name in ("study_run_finished", "study_run_stopped"):
            self._end(label)
        elif name not in ("study_run_found", "round_finished"):
            self.lines(event)
        if name in ("run_started", "run_resumed", "tick", "round_started", "round_finished", "run_finished"):
            self._run(label).hear(event)
        del self.sentences[MOST_SENTENCES:]
        self._renew(is_last=name in ENDS)

    def _run(self, label: str) -> _Run:
        if label not in self.runs:
            self.runs[label] = _Run(Course(label, 0, self.clock))
        return self.runs[label]

    def _end(self, label: str) -> None:
        """A run of several is over, and makes room."""
        if run := self.runs.pop(label, None):
            self.took.append(run.course.took)
        if self.study:
            self.study = (self.study[0] + 1, self.study[1])

    def _renew(self, is_last: bool) -> None:
        now = self.clock()
        if is_last or self._shown_at is None or now - self._shown_at >= PAUSE:
            self._shown_at = now
            if rows := list(self._rows()):
                self.show((element("div", *(html for html, _ in rows)), "\n".join(line for _, line in rows)))

    def _rows(self) -> Iterator[Shown]:
        if self.study:
            finished, runs = self.study
            going = [run.course for run in self.runs.values()]
            left = left_of_all(going, self.took, runs - finished - len(going), jobs=max(1, len(going)))
            yield _row(", ".join([f"{finished}/{runs} runs", *_in_words(left)]), finished, runs)
        for run in self.runs.values():
            yield _row(run.in_words(), run.course.done, run.course.rounds)
        for sentence in self.sentences:
            yield element("div", sentence, style="opacity:.75"), sentence


class _Run:
    """One run, and what it is at."""

    def __init__(self, course: Course) -> None:
        self.course, self.step = course, ""

    def begin(self, rounds: int, done: int) -> None:
        self.course.rounds, self.course.done = rounds, done

    def hear(self, event: Event) -> None:
        if event["event"] in ("run_started", "run_resumed"):
            self.course.rounds = event["rounds"]
        elif event["event"] == "tick":
            self.step = f"{STEPS.get(event['what'], event['what'])} {event['done']}/{event['total']}"
        elif event["event"] == "round_started":
            self.course.begins(event["round"])
        elif event["event"] == "round_finished":
            self.course.ends(event)
            self.step = ""
        else:
            self.step = "finished"

    def advance(self, done: int, latest: Event | None) -> None:
        """Of a run in another process, the rounds that its log has, and the last of them."""
        if latest and done > self.course.done:
            self.course.ends(latest, float(latest["seconds"]))
        self.course.done = done

    def in_words(self) -> str:
        course = self.course
        rounds = f"round {course.done}/{course.rounds}" if course.rounds else "starting"
        left = _in_words(course.left()) if course.done < course.rounds else ()
        words = ", ".join(filter(None, (rounds, self.step, course.said, *left)))
        return f"{course.label}: {words} {course.curve(BARS)}".rstrip()


def _in_words(seconds: float | None) -> tuple[str, ...]:
    """What is left, as far as it is known and there is anything."""
    return (f"{clock(seconds)} left",) if seconds else ()


def _row(words: str, done: int, total: int) -> Shown:
    """A bar with words beside it; without a total, one that only says that something is going on."""
    sizes = {"value": done, "max": total} if total else {}
    return element("div", element("progress", style="vertical-align:middle", **sizes), " ", words), words


class _Cell:
    """The output of the cell that is being run: shown once, and renewed from then on."""

    def __init__(self) -> None:
        self.handle = None

    def __call__(self, shown: Shown) -> None:
        from IPython.display import display

        html, text = shown
        content = {"text/html": str(html), "text/plain": text}
        if self.handle is None:
            self.handle = display(content, raw=True, display_id=True)
        else:
            self.handle.update(content, raw=True)
