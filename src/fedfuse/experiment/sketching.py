"""Pictures of a run that is not over, so that somebody can look before its end and after Ctrl-C.

They are drawn between two rounds, seldom enough that the run does not notice; the run's end draws them anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from fedfuse.federation import RoundRecord

FIRST = 20.0
"""Seconds that a run has gone on when it is first drawn; a shorter one is drawn at its end."""
WORTH = 5.0
"""Seconds after which a run that is interrupted is drawn."""
SHARE = 0.01
"""Of a run's time, that drawing may take."""
Draw = Callable[[Sequence[RoundRecord]], object]


class Sketches:
    """Draws the rounds so far with ``draw``, at sensible moments."""

    def __init__(self, draw: Draw, clock: Callable[[], float] = time.monotonic) -> None:
        self._draw, self._clock = draw, clock
        self._start = clock()
        self._next = self._start + FIRST
        self._history: Sequence[RoundRecord] = ()
        self._drawn = 0

    def look(self, history: Sequence[RoundRecord]) -> None:
        """A round is over."""
        self._history = history
        if self._clock() >= self._next:
            self._sketch()

    def end(self) -> None:
        """The run ends before its time."""
        if self._clock() - self._start >= WORTH:
            self._sketch()

    def _sketch(self) -> None:
        """What was not drawn yet, if something was measured."""
        if len(self._history) == self._drawn or not any(map(_is_measured, self._history)):
            return
        began = self._clock()
        with suppress(OSError):  # a picture is no reason to end a run; a full disk will tell soon enough
            self._draw(self._history)
        self._drawn = len(self._history)
        now = self._clock()
        self._next = now + max(FIRST, (now - began) / SHARE)


def _is_measured(record: RoundRecord) -> bool:
    accuracies = [record.ensemble_accuracy, *(own.accuracy for own in record.prototypes.values())]
    return any(accuracy is not None for accuracy in accuracies)
