"""``--verbose``: every event of a run as a line, as its log will have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fedfuse.core.errors import shortened

if TYPE_CHECKING:
    from rich.console import Console

    from fedfuse.federation.events import Event

LONGEST = 160
"""Of a line, and MOST of a list: the log has everything."""
MOST = 12


class Narrator:
    """A listener that prints what it hears, with the seconds since it began."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.began: float | None = None

    def __call__(self, event: Event) -> None:
        if "time" not in event:
            return
        self.began = self.began if self.began is not None else event["time"]
        line = f"{event['time'] - self.began:8.1f} s  {narrated(event)}"
        self.console.print(line, style="dim", highlight=False, markup=False, soft_wrap=True)


def together(*listeners: Callable[[Event], None]) -> Callable[[Event], None]:
    """Several listeners as one."""

    def hear(event: Event) -> None:
        for listener in listeners:
            listener(event)

    return hear


def narrated(event: Event) -> str:
    """An event in a line: what happened, and what is known of it."""
    said = ", ".join(_facts({key: value for key, value in event.items() if key not in ("event", "time")}))
    return shortened(f"{event['event'].replace('_', ' ')}: {said}", LONGEST)


def _facts(values: Mapping[str, Any]) -> Iterator[str]:
    for key, value in values.items():
        name = str(key).replace("_", " ")
        if isinstance(value, Mapping):
            yield from (f"{name} {fact}" for fact in _facts(value))
        elif isinstance(value, list | tuple) and len(value) > MOST:
            yield f"{len(value)} {name}"
        elif isinstance(value, float):
            yield f"{name} {value:.4g}"
        elif value not in (None, [], ()):
            yield f"{name} {value}"
