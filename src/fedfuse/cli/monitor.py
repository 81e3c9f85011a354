"""``fedfuse monitor``: a run's state for people and for Prometheus, from its folder."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedfuse.cli.console import print_facts

if TYPE_CHECKING:
    from fedfuse.core.loopback import Page, Pages
    from fedfuse.report.monitor import Monitor

PLAIN = "text/plain; version=0.0.4"
"""Prometheus' own text format."""


def monitor(
    folder: Annotated[Path, typer.Argument(metavar="RUN_FOLDER", help="of a run on any engine, now or later")],
    address: Annotated[str, typer.Option(metavar="HOST:PORT", help="a loopback address")] = "127.0.0.1:9300",
    silence: Annotated[
        float | None, typer.Option(min=0, help="seconds without an event after which /health says 503 (default: never)")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="print the metrics and exit")] = False,
) -> None:
    """Serve a page about a run on this machine, and /metrics and /health for Prometheus."""
    from fedfuse.core.loopback import serve
    from fedfuse.federation.folder import RunFolder
    from fedfuse.report.monitor import Monitor

    watched = Monitor(RunFolder(folder))
    if once:
        sys.stdout.write(_metrics(watched).text)
        return
    with serve(address, pages(watched, silence)) as url:
        print_facts(page=url, metrics=f"{url}metrics", health=f"{url}health")
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


def pages(watched: Monitor, silence: float | None) -> Pages:
    """What is served."""
    return {
        "/": lambda: _page(watched, silence),
        "/metrics": lambda: _metrics(watched),
        "/health": lambda: _health(watched, silence),
    }


def _page(watched: Monitor, silence: float | None) -> Page:
    from fedfuse.core.loopback import Page
    from fedfuse.report.run_page import run_page

    return Page(run_page(watched.look(), _name(watched), watched.is_complete, watched.trouble(silence)))


def _metrics(watched: Monitor) -> Page:
    from fedfuse.core.loopback import Page
    from fedfuse.report.prometheus import exposition

    return Page(exposition(watched.look(), _name(watched), watched.is_complete), PLAIN)


def _name(watched: Monitor) -> str:
    return watched.folder.path.resolve().name


def _health(watched: Monitor, silence: float | None) -> Page:
    from fedfuse.core.loopback import Page

    trouble = watched.trouble(silence)
    return Page(f"{trouble or 'ok'}\n", "text/plain", 503 if trouble else 200)
