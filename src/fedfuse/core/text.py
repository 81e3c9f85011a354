"""Text: what can be written, and the row of token numbers, padded at its end, that data and models agree on."""

from __future__ import annotations

from typing import NamedTuple

PADDING = 0
"""Never the number of a token, so that ``tokens != PADDING`` is the attention mask wherever the tokens go."""


class TextShape(NamedTuple):
    """The shape of one text as models see it: the most tokens it has, and below which number all tokens are."""

    length: int
    vocabulary: int


def is_one_line(text: str) -> bool:
    """Whether it can be written, and shown in a terminal without moving anything else there."""
    return is_utf8(text) and text.isprintable()


def is_utf8(text: str) -> bool:
    """Whether it can be written; names of files and JSON may hold halves of characters, which cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
