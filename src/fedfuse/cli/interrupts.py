"""Ctrl-C and its relatives: the first one ends a command, and impatient ones after it do not disturb that."""

from __future__ import annotations

import math
import signal
import time
from types import FrameType

ENDING = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
PATIENCE = 2.0
"""Seconds in which a command that is ending hears nothing more; whoever asks again later means it."""


class _Interrupt:
    """A handler that interrupts the main thread, but not twice at once."""

    def __init__(self) -> None:
        self._last = -math.inf

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        if time.monotonic() - self._last >= PATIENCE:
            self._last = time.monotonic()
            raise KeyboardInterrupt


def hear_interrupts() -> None:
    """Ctrl-C, a request to end and a terminal that is closed are the same: KeyboardInterrupt.

    Who started this process may have decided that it shall not hear Ctrl-C (a shell's background job) or the terminal
    (``nohup``).
    """
    interrupt = _Interrupt()
    for number in ENDING:
        if number == signal.SIGTERM or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)


def ignore_interrupts() -> None:
    """Nothing is left that could be interrupted."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
