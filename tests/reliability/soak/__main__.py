"""Small federations of 2,000 rounds: neither memory nor open files nor the time or the bytes of a round grow.

    python -m tests.reliability.soak                       every case, 2,000 rounds each
    python -m tests.reliability.soak --quick               200 rounds
    python -m tests.reliability.soak feddf-workers         some cases

Prints what was measured at four marks, and what it is judged by. Ends with 1 if anything grew. An interrupted program
goes on with the next case that is not finished. Linux only.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from fedfuse.experiment.run import Experiment
from tests.helpers import tiny_config
from tests.reliability.kept import ROOT, Kept
from tests.reliability.options import check_names
from tests.reliability.plain_table import plain_table
from tests.reliability.soak.meter import Mark, Meter
from tests.reliability.soak.rules import EARLY, RULES, growth

CASES = {
    "fedavg": ("fedavg", 1),
    "fedavg-workers": ("fedavg", 2),
    "feddf": ("feddf", 1),
    "feddf-workers": ("feddf", 2),
    "scaffold": ("scaffold", 1),
}
"""A method, and how many processes train its clients. SCAFFOLD's clients have states, which are kept on the disk."""
MARKS, QUICK = (100, 500, 1000, 2000), (20, 50, 100, 200)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    marks = QUICK if options.quick else MARKS
    if options.alone:
        soak(options.cases[0], marks)
        return 0
    kept = Kept("soak", *marks, fresh=options.fresh)
    cases = options.cases or list(CASES)
    try:
        for case in cases:
            if case not in kept.outcomes:
                print(f"{case}: {marks[-1]} rounds", flush=True)
                kept.add(case, _in_a_process_of_its_own(case, options.quick))
    except KeyboardInterrupt:
        print("interrupted; the same command goes on")
        return 2
    return report({case: [Mark(**mark) for mark in kept.outcomes[case]] for case in cases})


def _in_a_process_of_its_own(case: str, quick: bool) -> list[dict[str, float]]:
    command = [sys.executable, "-m", "tests.reliability.soak", case, "--alone", *(["--quick"] if quick else [])]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def soak(case: str, marks: Sequence[int]) -> None:
    """Run it, and print the marks as JSON."""
    method, workers = CASES[case]
    federation = {"rounds": marks[-1], "participation": 0.75, "checkpoint_every": 1}
    config = tiny_config(
        method, federation=federation, engine={"workers": workers}, evaluation={"pictures": False}, name="soak"
    )
    with tempfile.TemporaryDirectory(prefix="fedfuse-soak-") as folder:
        meter = Meter(Path(folder), marks)
        Experiment(config).run(Path(folder) / "run", listeners=(meter,))
    print(json.dumps([asdict(mark) for mark in meter.marks]))


def report(soaked: dict[str, list[Mark]]) -> int:
    """Print the table; 1 if anything grew."""
    names = [field.name for field in fields(Mark)]
    rows = [[case, *(getattr(mark, name) for name in names)] for case, marks in soaked.items() for mark in marks]
    for line in plain_table(["case", *names], rows):
        print(line)
    allowed = ", ".join(f"{name} {rule}" for name, rule in RULES.items())
    print(f"allowed from mark {EARLY + 1} to the last: {allowed}")
    grown = [f"{case}: {sentence}" for case, marks in soaked.items() for sentence in growth(marks)]
    for sentence in grown:
        print(sentence, file=sys.stderr)
    return 1 if grown else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK[-1]} rounds")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    check_names(parser, "case", options.cases, CASES)
    if options.alone and len(options.cases) != 1:
        parser.error("--alone is for one case")
    return options


if __name__ == "__main__":
    sys.exit(main())
