"""Fusions of checkpoints are killed at random moments and at operations on files, and end with the same bytes.

    python -m tests.reliability.fusions                         20 trials of every case
    python -m tests.reliability.fusions distil --trials 200 --seed 7

In each trial a fusion is struck one to three times: it is killed at a random moment, dies before, after or in the
middle of an operation on its files, or the disk fails there; and goes on each time by the same command. Ends with 1 if
any folder is not, file by file, that of a fusion that was left alone. An interrupted program goes on where it was.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.reliability.fusions.cases import CASES, make
from tests.reliability.fusions.trials import Trials
from tests.reliability.kept import Kept
from tests.reliability.options import at_least_one, check_names
from tests.reliability.outcomes import Outcome, report


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    kept = Kept("fusions", options.seed, fresh=options.fresh)
    wanted = [(case, number) for case in options.cases or CASES for number in range(options.trials)]
    with tempfile.TemporaryDirectory(prefix="fedfuse-fusions-") as folder:
        make(Path(folder), options.cases or CASES)
        try:
            for case in options.cases or CASES:
                _try_case(case, options, kept, Path(folder))
        except KeyboardInterrupt:
            print("interrupted; the same command goes on")
            return 2
    outcomes = [Outcome(**kept.outcomes[f"{case} {number}"]) for case, number in wanted]
    return report(outcomes, "case", "fusions")


def _try_case(case: str, options: argparse.Namespace, kept: Kept, folder: Path) -> None:
    if all(f"{case} {number}" in kept.outcomes for number in range(options.trials)):
        return
    trials = Trials(case, folder, folder / f"trials of {case}")
    print(f"{case}: {trials.operations} operations, {trials.seconds:.1f} s", flush=True)
    for number, strikes in enumerate(trials.plan(options.trials, options.seed)):
        name = f"{case} {number}"
        if name not in kept.outcomes:
            fault = trials.fault_after(strikes)
            kept.add(name, asdict(Outcome(case, len(strikes), fault)))
            if fault:
                print(f"{name} {strikes}: {fault}", flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="only these (default: all)")
    parser.add_argument("--trials", type=at_least_one, default=20, help="of each case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", action="store_true", help="forget what was tried")
    options = parser.parse_args(arguments)
    check_names(parser, "case", options.cases, CASES)
    return options


if __name__ == "__main__":
    sys.exit(main())
