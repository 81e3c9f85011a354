"""The page about runs, served on this machine while they go on."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedfuse.core.loopback import Page, Pages, serve
from fedfuse.experiment.looking.live import LiveRuns
from fedfuse.report.page import policy

LOOKED_AT = 3.0
"""Seconds since the last question, within which somebody still has the page open."""
PATIENCE = 3.0
"""Seconds for that page to take over how it all ended."""


@contextmanager
def watch(*places: str | Path, port: int = 0, title: str | None = None) -> Iterator[str]:
    """Serve a page about runs on this machine alone, as long as this lasts; gives its address.

    It reads the files of runs in these folders or below them, whichever process works on them; without a folder it is
    ``runs``. Runs that come later show up. Port 0 is a free one.

    >>> with fedfuse.watch("runs") as address:
    ...     address
    'http://127.0.0.1:.../'
    """
    live = LiveRuns(places or ["runs"], title)
    with serve(f"127.0.0.1:{port}", live_pages(live)) as address:
        try:
            yield address
        finally:
            _let_go(live)


def live_pages(live: LiveRuns) -> Pages:
    """What is served: the page, and what its script asks for."""
    return {"/": lambda: _page(live), "/now": lambda: _news(live)}


def _page(live: LiveRuns) -> Page:
    page = live.page()
    return Page(page.html, policy=policy(live=True), tag=page.tag)


def _news(live: LiveRuns) -> Page:
    text = live.news()
    return Page(text, "application/json", tag=hashlib.sha256(text.encode()).hexdigest()[:16])


def _let_go(live: LiveRuns) -> None:
    """Whoever looks at the page shall see the end, for which the page is asked for once more."""
    if time.monotonic() - live.asked_at > LOOKED_AT:
        return
    live.end()
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and not live.was_seen_to_end:
        time.sleep(0.05)
