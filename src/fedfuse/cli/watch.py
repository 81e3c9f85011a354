"""``fedfuse watch``: a live page about runs, and the same beside a command that runs some (``--watch``)."""

from __future__ import annotations

import sys
import threading
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fedfuse.cli.console import print_facts, say_aside
from fedfuse.cli.imports import quick_imports
from fedfuse.cli.options import Opened, Port
from fedfuse.cli.show import Runs
from fedfuse.experiment.finding import check_places


def watch(runs: Runs = None, port: Port = None, open_it: Opened = False) -> None:
    """Serve a live page about runs on this machine, until Ctrl-C.

    It has what the page of fedfuse report has, and how far each run is, how long it will take and what went wrong.
    Files are read and none is written; runs that come later into a folder show up.
    """
    places = runs or ["runs"]
    check_places(places)
    with quick_imports():
        from fedfuse.experiment.looking.watching import watch as serve

    with serve(*places, port=port or 0) as address:
        print_facts(page=address)
        sys.stdout.flush()
        _open(address, open_it)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


@contextmanager
def watched(places: Sequence[Path], wanted: bool, port: int | None, open_it: bool) -> Iterator[None]:
    """The page beside a command that runs something into these folders, if any option asks for it."""
    if not wanted and port is None and not open_it:
        yield
        return
    from fedfuse.experiment.looking.watching import watch as serve

    with serve(*places, port=port or 0) as address:
        say_aside([f"live page: {address}"])
        _open(address, open_it)
        yield


def _open(address: str, wanted: bool) -> None:
    """In the browser of whoever sits here, if there is one."""
    if wanted and not webbrowser.open(address):
        say_aside(["no browser was found here; open the address in yours"])
