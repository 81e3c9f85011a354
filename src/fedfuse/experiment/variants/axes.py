"""What varies: keys and the values that each may have, as ``--over KEY=VALUES`` says it to a comparison or a sweep.

partition.alpha=0.1,1.0                           these values; each is YAML, and commas inside brackets are its own
method.merge.kind=mean,ties                       parts
training.epochs=1..5                              whole numbers, all of them
training.optimizer.learning_rate=0.01..1:log      any number between, even by its logarithm: a sweep's business
training.optimizer.learning_rate=0.01..1:log:3    three of them at equal distances: 0.01, 0.1, 1
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedfuse.core.errors import ConfigError, shortened
from fedfuse.core.yaml_text import load_yaml
from fedfuse.experiment.config.changes import Address, Change, address_of, plain

MOST_VALUES = 10_000
"""Of one key."""
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
RANGE = re.compile(rf"({NUMBER})\.\.({NUMBER})((?::[^:]*)*)")
WHOLE = re.compile(r"[+-]?\d+")
DIGITS = 10
"""Of a number between two others: enough for any setting, and short enough to be read."""

Overs = Mapping[str, "Range | str | Sequence[Any]"]
"""Keys with their values, as Python says it."""


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both included; ``log``: even by their logarithms; ``steps``: so many of them.

    Between two whole numbers there are whole numbers only.

    >>> fedfuse.Range(0.01, 1.0, log=True, steps=3).values
    (0.01, 0.1, 1.0)
    """

    low: float
    high: float
    log: bool = False
    steps: int | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ConfigError(f"{self}: a range goes from a number to a larger one, for example 0.01..1")
        if self.log and self.low <= 0:
            raise ConfigError(f"{self}: only numbers above zero have logarithms")
        if self.steps is not None and not 2 <= self.steps <= MOST_VALUES:
            raise ConfigError(f"{self}: a range has from 2 to {MOST_VALUES:,} steps, for example 0.01..1:log:3")
        if not self.is_whole:  # 0.01 to 1 is 0.01 to 1.0, however it is written
            object.__setattr__(self, "low", float(self.low))
            object.__setattr__(self, "high", float(self.high))

    def __str__(self) -> str:
        ends = [f"{self.low!r}..{self.high!r}", *(["log"] if self.log else [])]
        return ":".join([*ends, *([] if self.steps is None else [str(self.steps)])])

    @property
    def is_whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def values(self) -> tuple[float, ...] | None:
        """Every number of it; None if it has no end of them."""
        if self.steps is not None:
            return tuple(dict.fromkeys(self.at(step / (self.steps - 1)) for step in range(self.steps)))
        if not self.is_whole or self.log or self.high - self.low >= MOST_VALUES:
            return None
        return tuple(range(int(self.low), int(self.high) + 1))

    def at(self, share: float) -> float:
        """The number at a share of the way, in digits that can be read."""
        if share in (0.0, 1.0):
            return self.high if share else self.low
        value = self.between(share)
        return round(value) if self.is_whole else float(f"{value:.{DIGITS}g}")

    def between(self, share: float) -> float:
        """The number at a share of the way."""
        one, other = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        value = one + share * (other - one)
        return math.exp(value) if self.log else value


@dataclass(frozen=True)
class Axis:
    """One key with the values that it may have; ``said`` is how the user put it."""

    said: str
    address: Address
    given: Range | tuple[Any, ...]

    @staticmethod
    def read(text: str) -> Axis:
        """An ``--over``."""
        said = f"--over {shortened(text)}"
        key, equals, values = text.partition("=")
        if not equals or not key or not values.strip():
            raise ConfigError(f"{said}: write KEY=VALUE,VALUE or KEY=LOW..HIGH, for example partition.alpha=0.1,1.0")
        return Axis.of(said, key, values)

    @staticmethod
    def of(said: str, key: str, given: Range | str | Sequence[Any]) -> Axis:
        """A key with values in Python's or the command line's words."""
        if isinstance(given, str):
            given = _range(said, given) or [load_yaml(piece, f"{said}: the value") for piece in _pieces(given)]
        if not isinstance(given, Range):
            if not isinstance(given, Sequence):
                raise ConfigError(f"{said}: give a list of values, a Range, or a text such as '0.01..1:log'")
            given = tuple(plain(value) for value in given)
            _check_values(said, given)
        address = address_of(said, key)
        if address in (("seed",), ("name",)):
            raise ConfigError(f"{said}: a {address[0]} is no setting; {_instead(address[0])}")
        return Axis(said, ("method", "name") if address == ("method",) and _names(given) else address, given)

    @property
    def values(self) -> tuple[Any, ...]:
        """All values, for whoever tries each of them."""
        values = self.given.values if isinstance(self.given, Range) else self.given
        if values is None:
            raise ConfigError(
                f"{self.said}: there is no end of numbers between these; say how many, for example "
                f"{'.'.join(self.address)}={Range(self.given.low, self.given.high, self.given.log, 5)}"  # type: ignore[union-attr]
            )
        return values

    def change(self, value: Any) -> Change:
        """The experiment with one of them."""
        return Change.of(f"{self.said.partition('=')[0]}={shortened(str(value), 40)}", self.address, value)


def axes_of(overs: Sequence[str] | Overs) -> list[Axis]:
    """What an experiment is varied over, each key once."""
    if isinstance(overs, Mapping):
        axes = [Axis.of(f"over {key}", str(key), given) for key, given in overs.items()]
    else:
        axes = [Axis.read(text) for text in overs]
    for place, axis in enumerate(axes):
        if any(axis.address == other.address for other in axes[:place]):
            raise ConfigError(f"{axis.said}: {'.'.join(axis.address)} is varied twice; write all its values at once")
    return axes


def _range(said: str, text: str) -> Range | None:
    found = RANGE.fullmatch(text.strip())
    if not found:
        return None
    log, steps = False, None
    for word in found[3].split(":")[1:]:
        if word == "log":
            log = True
        elif word.isdecimal() and steps is None:
            steps = int(word[:9])
        else:
            raise ConfigError(f"{said}: after a range may stand :log and a number of steps, not '{shortened(word)}'")
    number = int if WHOLE.fullmatch(found[1]) and WHOLE.fullmatch(found[2]) else float
    try:
        return Range(number(found[1]), number(found[2]), log, steps)
    except ConfigError as error:
        raise ConfigError(f"{said}: {error}") from None
    except (ValueError, OverflowError):
        raise ConfigError(f"{said}: a number has too many digits") from None


def _pieces(text: str) -> list[str]:
    """What commas separate outside of brackets and quotes."""
    pieces, depth, quote = [""], 0, ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in "[{(":
            depth += 1
        elif sign in "]})":
            depth -= 1
        if sign == "," and not depth and not quote:
            pieces.append("")
        else:
            pieces[-1] += sign
    return pieces


def _check_values(said: str, values: Sequence[Any]) -> None:
    if not values or len(values) > MOST_VALUES:
        raise ConfigError(f"{said}: give between 1 and {MOST_VALUES:,} values")
    seen = set()
    for value in map(repr, values):
        if value in seen:
            raise ConfigError(f"{said}: {shortened(value)} stands there twice")
        seen.add(value)


def _names(given: Range | tuple[Any, ...]) -> bool:
    return isinstance(given, tuple) and all(isinstance(value, str) for value in given)


def _instead(key: str) -> str:
    return "write --seeds 0,1,2" if key == "seed" else "the variants get their names from what varies"
