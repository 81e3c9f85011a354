"""``python -m tests.fuzzing --cases 1000000 --seed 1 [TARGET...]``: all targets, each in a process of its own."""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.fuzzing.harness import Tally, Target, case_of, run, targets

MEMORY = 3 << 30
"""Bytes that a target may ask for beyond what it has at first."""
SILENCE = 200.0
"""Seconds after which a process that is stuck where no alarm reaches it is ended."""


def main() -> int:
    options = _options()
    found, remarks = targets()
    for name in options.targets:
        if name not in found:
            sys.exit(f"unknown target '{name}' (known: {', '.join(found)})")
    chosen = {name: found[name] for name in options.targets or found}
    print(*remarks, sep="\n", end="\n" if remarks else "")
    with _folder():
        if options.only is not None:
            return _only(chosen, options.seed, options.only)
        share = -(-options.cases // len(chosen))
        print(f"seed {options.seed}, {share:,} cases of each of {len(chosen)} targets")
        tallies = _all(chosen, options.seed, share)
    for tally in tallies:
        for fault in tally.faults.values():
            again = f"python -m tests.fuzzing {tally.name} --seed {options.seed} --only {fault.first}"
            print(f"{tally.name}: {fault.times} x {fault.what}; again: {again}")
    return 1 if any(tally.faults for tally in tallies) else 0


def _all(chosen: dict[str, Target], seed: int, cases: int) -> list[Tally]:
    """One target after the other, with a line for each."""
    _print("target", "cases", "read", "refused", "faults", "slowest", "its case", "memory", "seconds")
    tallies = []
    for name, target in chosen.items():
        began = time.perf_counter()
        tally, was_interrupted = _in_a_process(name, target, seed, cases)
        tallies.append(tally)
        slowest, grown = f"{tally.slowest * 1000:,.0f} ms", f"{tally.grown:,.0f} MB"
        _print(*_counts(name, [tally]), slowest, str(tally.slowest_case), grown, f"{time.perf_counter() - began:,.0f}")
        if was_interrupted:
            print("interrupted")
            break
    _print(*_counts("all", tallies))
    return tallies


def _counts(name: str, tallies: list[Tally]) -> list[str]:
    faults = sum(fault.times for tally in tallies for fault in tally.faults.values())
    sums = (sum(getattr(tally, what) for tally in tallies) for what in ("cases", "read", "refused"))
    return [name, *(f"{number:,}" for number in (*sums, faults))]


def _print(name: str, *columns: str) -> None:
    print(f"{name:18}", *(f"{column:>9}" for column in columns), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("targets", nargs="*", help="all if none is named")
    parser.add_argument("--cases", type=int, default=1_000_000, help="of all targets together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the number of one case, whose traceback is shown")
    return parser.parse_args()


def _only(chosen: dict[str, Target], seed: int, number: int) -> int:
    for name, target in chosen.items():
        case = case_of(name, target, target.honest(), seed, number)
        print(f"{name}: {case!a:.2000}")
        target.read(case)
    return 0


@contextlib.contextmanager
def _folder() -> Iterator[None]:
    """A folder in memory for all files, and none where decoded data would be kept."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None, prefix="fedfuse-") as folder:
        tempfile.tempdir = folder
        os.environ["FEDFUSE_CACHE"] = os.devnull + "/nowhere"
        yield


def _in_a_process(name: str, target: Target, seed: int, cases: int) -> tuple[Tally, bool]:
    """One process after the other, until all cases were tried: a case may end its process."""
    context, number, total, was_interrupted = multiprocessing.get_context("fork"), 0, Tally(name), False
    while number < cases and not was_interrupted:
        at = context.Array("q", [number, 0, 0], lock=False)
        here, there = context.Pipe(duplex=False)
        child = context.Process(target=_work, args=(name, target, seed, range(number, cases), at, there))
        child.start()
        there.close()
        was_interrupted = _wait(here, at)
        try:
            part, number = here.recv() if here.poll() else None, cases
        except EOFError:
            part = None
        if part is None:
            child.kill()
            child.join()
            number = at[0] + 1
            part = Tally(name, at[1], at[2])
            part.blame(f"ends its process ({_ending(child.exitcode)})", at[0])
        child.join()
        total = _sum(total, part)
    return total, was_interrupted


def _wait(here: Connection, at: Any) -> bool:
    """Until there is a result, or the process is gone or stuck; whether Ctrl-C was pressed meanwhile."""
    was_interrupted, before, since = False, -1, time.monotonic()
    while time.monotonic() - since < SILENCE:
        try:
            if here.poll(1.0):
                break
        except KeyboardInterrupt:
            was_interrupted = True
        if at[0] != before:
            before, since = at[0], time.monotonic()
    return was_interrupted


def _ending(code: int | None) -> str:
    return "stuck" if code == -signal.SIGKILL else signal.Signals(-code).name if code and code < 0 else f"exit {code}"


def _work(name: str, target: Target, seed: int, numbers: range, at: Any, there: Connection) -> None:
    used = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))

    def reached(number: int, tally: Tally) -> None:
        at[:] = [number, tally.read, tally.refused]

    there.send(run(name, target, seed, numbers, reached))
    there.close()


def _sum(one: Tally, other: Tally) -> Tally:
    for what, fault in other.faults.items():
        one.faults.setdefault(what, fault)
        if one.faults[what] is not fault:
            one.faults[what].times += fault.times
    one.read, one.refused, one.grown = one.read + other.read, one.refused + other.refused, max(one.grown, other.grown)
    if other.slowest > one.slowest:
        one.slowest, one.slowest_case = other.slowest, other.slowest_case
    return one


if __name__ == "__main__":
    sys.exit(main())
