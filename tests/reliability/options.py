"""What the options of these programs have in common: nonsense is refused with a sentence before anything runs."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence


def at_least_one(text: str) -> int:
    """A number of things to try; with none, nothing would be found, and all would seem well."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"at least 1, not '{text}'")
    return int(text)


def check_names(parser: argparse.ArgumentParser, what: str, names: Sequence[str], known: Collection[str]) -> None:
    """Whether all that were named are there, each once."""
    for place, name in enumerate(names):
        if name not in known:
            parser.error(f"there is no {what} '{name}'; there are {', '.join(known)}")
        if name in names[:place]:
            parser.error(f"{what} '{name}' is named twice")
