"""Words of a command line, and the sentence for one that was interrupted."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from fedfuse.core.errors import ConfigError, FedfuseError, shortened


def words_of(text: str) -> list[str]:
    """What commas separate."""
    return [word.strip() for word in text.split(",") if word.strip()]


def check_experiments(words: Sequence[str]) -> None:
    """Refuse what blanks have separated from an option's other words, and so stands for an experiment."""
    from fedfuse.catalogue.method_names import method_names

    for word in words:
        is_method = word in method_names()
        if (is_method or word.isdecimal()) and not Path(word).exists():
            example = "--methods fedavg,feddf" if is_method else "--seeds 0,1"
            raise ConfigError(f"{word} is no experiment; several words of an option need commas: {example}")


MOST_SEEDS = 10_000


def seeds_of(text: str) -> list[int]:
    """Different whole numbers, one by one or from one to another: ``0-4,7``."""
    found: list[int] = []
    for word in words_of(text):
        ends = [end.strip() for end in word.split("-")]
        if len(ends) > 2 or not all(end.isdecimal() and len(end) < 40 for end in ends):
            raise ConfigError(f"--seeds {shortened(text)}: write whole numbers separated by commas, or ranges as 0-4")
        first, last = int(ends[0]), int(ends[-1])
        if not 0 <= last - first < MOST_SEEDS:
            raise ConfigError(f"--seeds {shortened(text)}: write the smaller number first, and at most 10,000 seeds")
        found += range(first, last + 1)
    if not found or len(set(found)) < len(found):
        raise ConfigError(f"--seeds {shortened(text)}: write different whole numbers, for example 0,1,2 or 0-4")
    return found


SHORT_FOR = {
    "method": "method={}",
    "seed": "seed={}",
    "engine": "engine={{kind: {}}}",
    "workers": "engine.workers={}",
    "address": "engine.address={}",
}
"""The assignments that options stand for."""


def with_assignments(options: Mapping[str, object], assignments: Sequence[str]) -> list[str]:
    """What options say, as assignments before the others.

    Both about one key is refused: one of them would be without effect.
    """
    said_so = {name: value for name, value in options.items() if value is not None}
    given = {f"--{name} {value}": SHORT_FOR[name].format(value) for name, value in said_so.items()}
    for said, assignment in given.items():
        key = assignment.partition("=")[0]
        for other in assignments:
            if other.partition("=")[0].strip() in (key, *(["method.name"] if key == "method" else [])):
                raise ConfigError(f"{said} and --set {shortened(other)} both say what {key} is; keep one of them")
    return [*given.values(), *assignments]


def check_loudness(quiet: bool, verbose: bool, as_json: bool = False) -> None:
    """Nobody can hear nothing and everything."""
    if verbose and (quiet or as_json):
        raise ConfigError(
            f"{'--quiet' if quiet else '--json'} and --verbose both say what is printed; give one of them"
        )


def go_on_with(command: str) -> FedfuseError:
    """For whoever pressed Ctrl-C."""
    return FedfuseError(f"interrupted; finished rounds are kept, go on with: {command}")


def report_of(folder: Path) -> str:
    """The command that makes a page of the runs in a folder."""
    return f"fedfuse report {shlex.quote(str(folder))}"


def check_free(out: Path | None, overwrite: bool) -> None:
    """Refuse to write over a file that is there, unless that is wanted."""
    if out is not None and out.is_dir():
        raise ConfigError(f"{out} is a folder; give the name of a file")
    if out is not None and out.exists() and not overwrite:
        raise ConfigError(f"{out} is there already; choose another --out, or replace it with --overwrite")
