"""Text from elsewhere, made fit for a log or a terminal."""

from __future__ import annotations

LONGEST = 200


def one_line(text: str) -> str:
    """The beginning of a text, with a space for whatever a terminal or a log could take for more than letters."""
    return printable(text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}...")


def printable(text: str) -> str:
    """The same of a text of any length, such as a path."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
