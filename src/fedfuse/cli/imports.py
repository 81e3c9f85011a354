"""Importing much at once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quick_imports() -> Iterator[None]:
    """Without the collector, which would look through all modules again and again, and find nothing to collect."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
