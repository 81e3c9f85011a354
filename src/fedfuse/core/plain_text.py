"""Text from elsewhere, made fit for a log."""

from __future__ import annotations

LONGEST = 200


def one_line(text: str) -> str:
    """The beginning of a text, with a space for whatever a terminal or a log could take for more than letters."""
    cut = text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
    return "".join(letter if letter.isprintable() else " " for letter in cut)
