"""Errors made for the person who can mend them: one sentence, no traceback needed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import ClassVar

from fedfuse.core.asked import in_words_of_asker


class FedfuseError(Exception):
    """A mistake in the input or the surroundings; the command line prints its sentence and exits with 2."""

    exit_code: ClassVar[int] = 2

    def __str__(self) -> str:
        return in_words_of_asker(super().__str__())


class ConfigError(FedfuseError):
    """An experiment file asks for something unknown, out of range or impossible."""


class UnknownKeyError(ConfigError, ValueError):
    """A key that nothing answers to, beside those that something does; ``at`` is the section that has no such key."""

    def __init__(
        self, key: str, known: Iterable[str], at: tuple[str, ...] = (), where: str = "", suggestion: str | None = None
    ) -> None:
        self.key, self.known, self.at = key, tuple(known), at
        section = f"{'.'.join(at)}: " if at else ""
        near = suggest(key, self.known) if suggestion is None else suggestion
        super().__init__(f"{where}{section}unknown key '{shortened(key)}'{near}")


class DataError(FedfuseError):
    """A dataset is missing, unreadable or not what the experiment needs."""


class RunFolderError(FedfuseError):
    """A run folder cannot be used as asked: occupied, of another experiment, unwritable."""


class NothingLearntError(FedfuseError):
    """A run came to its end, and no model is another than at its start; the command line exits with 3."""

    exit_code: ClassVar[int] = 3


class StopRun(FedfuseError):  # noqa: N818
    """Raised by a listener: the run shall stop after the round that it is in, and be gone on with another time."""


class MissingExtraError(FedfuseError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional package: pip install 'fedfuse[{extra}]'")


class OlderKeyWarning(FutureWarning):
    """A key of an experiment file that has another name now, and is still read."""


def shortened(text: str, most: int = 100) -> str:
    """What a sentence has room for, and without what would move a cursor or break a line."""
    short = text if len(text) <= most else f"{text[: most - 3]}..."
    return short if short.isprintable() else "".join(map(_visible, short))


def _visible(sign: str) -> str:
    return sign if sign.isprintable() else sign.encode("unicode_escape").decode()


def listed(names: Sequence[str], most: int = 8) -> str:
    """The first few of many."""
    shown = ", ".join(shortened(name, 40) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``" (did you mean 'x'?)"`` for the nearest known word, if one is near."""
    near = difflib.get_close_matches(shortened(word), sorted(known), n=1, cutoff=0.6)
    return f" (did you mean '{shortened(near[0])}'?)" if near else ""


def suggest(word: str, known: Iterable[str], listed: bool = True) -> str:
    """The nearest known word, or, if wanted, the list of all known ones."""
    options = sorted(known)
    if near := did_you_mean(word, options):
        return near
    return f" (known: {shortened(', '.join(options), 1000)})" if options and listed else ""


def unknown(what: str, word: str, known: Iterable[str]) -> str:
    """The sentence for a name that nothing answers to."""
    return f"unknown {what} '{shortened(word)}'{suggest(word, known)}"
