"""Output where there are few letters: what a terminal or a file cannot show is written with letters that it can."""

from __future__ import annotations

import codecs
import sys

INSTEAD = {
    **{"─": "-", "━": "-", "╸": "-", "╺": "-", "│": "|", "–": "-", "−": "-"},
    **{"±": "+-", "…": "...", "×": "x", "→": "->", "≥": ">=", "≤": "<="},
}
HANDLER = "fedfuse-letters"


def readable(error: UnicodeError) -> tuple[str, int]:
    """What stands for letters that cannot be encoded."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(INSTEAD.get(letter, "?") for letter in error.object[error.start : error.end]), error.end


def use_known_letters() -> None:
    """No name and no sign is a reason to stop, whatever the encoding is."""
    codecs.register_error(HANDLER, readable)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=HANDLER)
