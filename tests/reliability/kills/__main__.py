"""Runs of every method on every engine are killed at random moments and resumed, and end with the same bytes.

    python -m tests.reliability.kills                      100 trials
    python -m tests.reliability.kills --trials 20 --seed 7
    python -m tests.reliability.kills --engines local,workers

In each trial a run is ended one to three times: its process, its whole group or one of its workers by SIGKILL, or it is
asked to end (SIGTERM). After that it goes on, mostly on another engine than before. Some runs have 100,000 clients.
Ends with 1 if any run does not end with the bytes of one that was left alone, or leaves a process behind. An
interrupted program goes on where it was.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from fedfuse.methods import METHODS
from tests.reliability.kept import Kept
from tests.reliability.kills.legs import available
from tests.reliability.kills.plan import HOWS, MANY, Trial, plan
from tests.reliability.kills.runs import Outcome, Runs
from tests.reliability.options import at_least_one, check_names
from tests.reliability.plain_table import plain_table


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    kept = Kept("kills", options.seed, *options.engines, fresh=options.fresh)
    names = [str(number) for number in range(options.trials)]
    with tempfile.TemporaryDirectory(prefix="fedfuse-kills-") as folder:
        runs = Runs(Path(folder))
        try:
            for name in names:
                if name not in kept.outcomes:
                    trial = plan(int(name), options.seed, options.engines)
                    outcome = runs.outcome(trial)
                    kept.add(name, asdict(outcome))
                    print(_line(trial, outcome), flush=True)
        except KeyboardInterrupt:
            print("interrupted; the same command goes on")
            return 2
    return report([Outcome(**kept.outcomes[name]) for name in names])


def report(outcomes: Sequence[Outcome]) -> int:
    """Print the table; 1 if anything is not as it should be."""
    engines = sorted({engine for outcome in outcomes for engine in outcome.engines})
    groups = {f"on {engine}": [one for one in outcomes if engine in one.engines] for engine in engines}
    groups[f"{MANY:,} clients"] = [one for one in outcomes if one.clients == MANY]
    head = ["trials", *HOWS, "kills", "same bytes"]
    rows = [_row(name, group) for name, group in [*groups.items(), ("all", outcomes)]]
    for line in plain_table(["", *head], rows):
        print(line)
    print(f"{len({outcome.method for outcome in outcomes})} of {len(METHODS)} methods")
    faults = [f"{one.method} on {', '.join(one.engines)}: {one.fault}" for one in outcomes if one.fault]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def _row(name: str, outcomes: Sequence[Outcome]) -> list[object]:
    by_how = [sum(outcome.kills.get(how, 0) for outcome in outcomes) for how in HOWS]
    return [name, len(outcomes), *by_how, sum(by_how), sum(not outcome.fault for outcome in outcomes)]


def _line(trial: Trial, outcome: Outcome) -> str:
    kills = ", ".join(f"{count} x {how}" for how, count in outcome.kills.items()) or "was faster"
    where = "/".join(trial.engines)
    return (
        f"{trial.number:>3}  {trial.method:<24} {where:<22} {kills:<34} {outcome.fault or 'same'}  {outcome.seconds} s"
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    there = available()
    parser.add_argument("--trials", type=at_least_one, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--engines",
        type=lambda text: text.split(","),
        default=there,
        help=f"of those that are there: {','.join(there)}",
    )
    parser.add_argument("--fresh", action="store_true", help="forget what was tried")
    options = parser.parse_args(arguments)
    check_names(parser, "engine", options.engines, there)
    if not set(options.engines) & {"local", "workers", "joined"}:
        parser.error("--engines: one of them has to be local, workers or joined")
    return options


if __name__ == "__main__":
    sys.exit(main())
