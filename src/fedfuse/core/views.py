"""How runs may be looked at, in words that commands and functions share; nothing heavy is imported for them."""

from __future__ import annotations

from typing import Literal, get_args

Width = Literal["95", "std", "none"]
"""What stands behind ±: half of the 95 % interval of the mean, the sample standard deviation, nothing."""
WIDTHS: tuple[Width, ...] = get_args(Width)

Band = Literal["range", "95", "std", "none"]
"""What is shaded: all seeds, the 95 % interval of their mean, one standard deviation to each side, nothing."""
BANDS: tuple[Band, ...] = get_args(Band)

Spent = Literal["rounds", "bytes", "seconds", "simulated"]
"""What a budget may be of: rounds, bytes up and down, seconds of this machine, seconds of the clock."""
SPENT: tuple[Spent, ...] = get_args(Spent)

Format = Literal["text", "md", "latex", "csv", "json"]
"""What a table may be written as."""
FORMATS: tuple[Format, ...] = get_args(Format)

Picture = Literal["curves", "partition", "confusion"]
"""What a picture may be of; the last two are of a single run."""
PICTURES: tuple[Picture, ...] = get_args(Picture)
