"""``fedfuse doctor``: whether it works here."""

from __future__ import annotations

import shutil
import sys
from typing import Annotated

import typer

from fedfuse.core.errors import FedfuseError


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of lines")] = False,
) -> None:
    """Say what is installed, found and missing here, and what mends it. Ends with 2 if fedfuse does not work."""
    from fedfuse.core.plain_json import dumps
    from fedfuse.experiment.doctor import doctor as examine

    found = examine(_say if sys.stderr.isatty() else None)
    if sys.stderr.isatty():
        _say("")
    if as_json:
        sys.stdout.write(dumps(found.to_json(), indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(found.lines(shutil.get_terminal_size().columns)) + "\n")
        sys.stdout.flush()
    if not found.works:
        raise FedfuseError(f"what is needed does not work: {', '.join(one.name for one in found.broken)}")


def _say(title: str) -> None:
    """What is looked at, on a line that the next one takes."""
    sys.stderr.write(f"\r\x1b[Klooking at: {title}" if title else "\r\x1b[K")
    sys.stderr.flush()
