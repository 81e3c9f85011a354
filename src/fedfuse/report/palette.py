"""Signs that tell lines apart, for every way of drawing; colour is never the only one."""

from __future__ import annotations

# Okabe and Ito's palette for all kinds of colour vision, without black and the yellow that white paper swallows
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# five markers and six colours have no common divisor: thirty lines before a pair returns
MARKERS = ("o", "s", "^", "D", "v")
# lines beyond the sixth, whose colours have been seen before, are dashed
DASHES: tuple[tuple[int, ...], ...] = ((), (5, 2), (1, 1))
LABEL_LENGTH = 28


def shorten(label: str, limit: int = LABEL_LENGTH) -> str:
    """A long name without its middle, since method and seed stand at its ends."""
    if len(label) <= limit:
        return label
    kept = limit - 1
    return f"{label[: kept - kept // 2]}…{label[-(kept // 2) :]}"
