"""Ctrl-C in functions of the front door."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interruptible(overwrite: bool = False) -> Iterator[None]:
    """Ctrl-C says what to do next, and not in which of many frames it was heard."""
    try:
        yield
    except KeyboardInterrupt:
        way = "the same call, without overwrite=True, goes on" if overwrite else "the same call goes on"
        raise KeyboardInterrupt(f"what was finished is kept, and {way}") from None
