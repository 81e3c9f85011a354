"""How runs go, for bars in terminals and notebooks: what is left of one and of all, accuracies and a small curve."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from statistics import fmean

from fedfuse.experiment.progress import accuracies
from fedfuse.federation.events import Event
from fedfuse.report.remaining import WINDOW, round_seconds, seconds_left
from fedfuse.report.terminal import sparkline

CURVE = 20
"""Signs of a curve, at most."""
LEAST_CURVE = 6
"""With less room there is none."""
MOST_VALUES = 10_000


class Course:
    """One run; ``at_most`` says that it may end before its last round."""

    def __init__(self, label: str, rounds: int, clock: Callable[[], float], at_most: bool = False) -> None:
        self.label, self.rounds, self.at_most = label, rounds, at_most
        self.done = 0
        self._clock, self._start = clock, clock()
        self._began: float | None = None
        self._lengths: deque[float] = deque(maxlen=WINDOW + 1)
        self._values: deque[float] = deque(maxlen=MOST_VALUES)
        self.said = ""

    def begins(self, number: int) -> None:
        """A round."""
        self._began, self.done = self._clock(), number - 1

    def ends(self, event: Event, seconds: float | None = None) -> None:
        """A round, which took so long, or since it began here."""
        now = self._clock()
        took = seconds if seconds is not None else now - self._began if self._began is not None else None
        if took is not None:
            self._lengths.append(took)
        self._began, self.done = now, event["round"]
        self.said = accuracies(event) or self.said
        measured = [own["accuracy"] for own in event["prototypes"].values() if own["accuracy"] is not None]
        if measured or event["ensemble_accuracy"] is not None:
            self._values.append(fmean(measured) if measured else event["ensemble_accuracy"])

    @property
    def took(self) -> float:
        """So far."""
        return self._clock() - self._start

    def left(self) -> float | None:
        """Seconds, as far as rounds tell."""
        since = 0.0 if self._began is None else self._clock() - self._began
        return seconds_left(round_seconds(self._lengths), self.rounds - self.done, since)

    def whole(self) -> float | None:
        """What a run like this one takes."""
        each = round_seconds(self._lengths)
        return None if each is None else each * self.rounds

    def title(self, width: int, ascii_only: bool) -> str:
        """In one line of this width, with a curve of what was measured if there is room."""
        text = f"{self.label}: {self.said}" if self.said else self.label
        return f"{text} {self.curve(min(CURVE, width - len(text) - 1), ascii_only)}".rstrip()

    def curve(self, room: int, ascii_only: bool = False) -> str:
        """Of what was measured, in so many signs; nothing where there is no room, or nothing to see."""
        return sparkline(self._values, room, ascii_only) if len(self._values) > 1 and room >= LEAST_CURVE else ""


def left_of_all(going: Sequence[Course], took: Sequence[float], waiting: int, jobs: int = 1) -> float | None:
    """Of runs that go on and others that wait, by what finished ones took, or else by those that go on."""
    like = list(took) or [whole for whole in (course.whole() for course in going) if whole is not None]
    if not like:
        return None if going or waiting else 0.0
    typical = fmean(like)
    lefts = [(course.left(), course.took) for course in going]
    known = [max(0.0, typical - so_far) if left is None else left for left, so_far in lefts]
    return max((sum(known) + waiting * typical) / jobs, max(known, default=0.0))
