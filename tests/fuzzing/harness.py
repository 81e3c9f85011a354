"""Runs the cases of a target and counts what became of them."""

from __future__ import annotations

import pkgutil
import resource
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from random import Random
from types import FrameType
from typing import Any, Protocol, cast

from fedfuse.core.errors import FedfuseError
from fedfuse.core.text import is_utf8

SECONDS, WAITING = 10.0, 120.0
"""That a case may compute, and that it may take on a machine that does other things besides."""
LONGEST = 1500
"""Characters of a sentence that refuses one."""


class Target(Protocol):
    """A module of this package."""

    __name__: str

    def honest(self) -> list[Any]: ...
    def mutate(self, rng: Random, case: Any) -> Any: ...
    def read(self, case: Any) -> None: ...


class TooSlow(BaseException):
    """No Exception, so that no reader takes it for a fault of the file."""


@dataclass
class Fault:
    """Cases that ended the same way at the same place; ``first`` is the number of one of them."""

    what: str
    first: int
    times: int = 0


@dataclass
class Tally:
    """What became of a target's cases."""

    name: str
    read: int = 0
    refused: int = 0
    faults: dict[str, Fault] = field(default_factory=dict)
    slowest: float = field(default=0.0, compare=False)
    slowest_case: int = field(default=0, compare=False)
    grown: float = field(default=0.0, compare=False)
    """Megabytes of memory that were used at most, beyond what was used at first."""

    @property
    def cases(self) -> int:
        return self.read + self.refused + sum(fault.times for fault in self.faults.values())

    def blame(self, what: str, number: int) -> None:
        self.faults.setdefault(what, Fault(what, number)).times += 1


def targets() -> tuple[dict[str, Target], list[str]]:
    """All modules of this package that are one, by name, and a sentence about each that cannot be imported."""
    found, remarks = {}, []
    package = import_module(__package__ or "tests.fuzzing")
    for info in pkgutil.iter_modules(package.__path__):
        if info.name.startswith(("_", "test_")):
            continue
        try:
            module = import_module(f"{package.__name__}.{info.name}")
        except ImportError as error:
            remarks.append(f"{info.name} is left out: {error}")
            continue
        if all(hasattr(module, name) for name in ("honest", "mutate", "read")):
            found[info.name] = cast(Target, module)
    return found, remarks


def case_of(name: str, target: Target, honest: list[Any], seed: int, number: int) -> Any:
    """The case of this number; the first ones are the honest ones themselves."""
    if number < len(honest):
        return honest[number]
    rng = Random(f"{name} {seed} {number}")
    return target.mutate(rng, rng.choice(honest))


def run(
    name: str, target: Target, seed: int, numbers: Iterable[int], reached: Callable[[int, Tally], None] | None = None
) -> Tally:
    """Read every case; honest ones must not be refused. Ctrl-C ends it early."""
    tally, before = Tally(name), _memory()
    with warnings.catch_warnings(), _alarm():
        warnings.simplefilter("ignore")
        honest = target.honest()
        try:
            for number in numbers:
                if reached is not None:
                    reached(number, tally)
                _try(tally, target, case_of(name, target, honest, seed, number), number, number < len(honest))
        except KeyboardInterrupt:
            pass
    tally.grown = _memory() - before
    return tally


def _try(tally: Tally, target: Target, case: Any, number: int, is_honest: bool) -> None:
    began = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, WAITING)
    try:
        target.read(case)
        tally.read += 1
    except KeyboardInterrupt:
        raise
    except FedfuseError as error:
        if is_honest or not _is_sentence(str(error)):
            tally.blame(f"an honest case is refused, or not in a sentence: {str(error)[:100]!r}", number)
        else:
            tally.refused += 1
    except TooSlow:
        tally.blame("takes too long", number)
    except BaseException as error:
        tally.blame(f"{type(error).__name__} at {_place(error)}", number)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    seconds = time.process_time() - began
    if seconds > tally.slowest:
        tally.slowest, tally.slowest_case = seconds, number


def _is_sentence(text: str) -> bool:
    """Something that can be printed, and fits on a screen."""
    return 0 < len(text) < LONGEST and is_utf8(text)


def _place(error: BaseException) -> str:
    """Where our code was when it happened."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "fedfuse" in frame.filename] or frames
    return f"{'/'.join(ours[-1].filename.split('/')[-2:])}:{ours[-1].lineno}"


@contextmanager
def _alarm() -> Iterator[None]:
    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlow

    before = {number: signal.signal(number, ring) for number in (signal.SIGALRM, signal.SIGPROF)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _memory() -> float:
    """The most that this process has ever used, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
