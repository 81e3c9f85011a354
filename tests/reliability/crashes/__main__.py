"""Every operation on files may be a run's last one, or fail: it goes on to the same bytes all the same.

    python -m tests.reliability.crashes                    some operations of every method, in each of six ways
    python -m tests.reliability.crashes fedavg --all       all operations of some methods
    python -m tests.reliability.crashes --seed 7           others

Every third run is struck a second time while it goes on. Ends with 1 if any run does not end with the bytes of one that
was left alone. An interrupted program goes on where it was.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from fedfuse.methods import METHODS
from tests.helpers import tiny_config
from tests.reliability.crashes.mortal_files import HOWS, How, MortalFiles
from tests.reliability.evidence import Evidence, difference, evidence
from tests.reliability.forked import Forked, HangsError, command_line
from tests.reliability.kept import Kept
from tests.reliability.options import at_least_one, check_names
from tests.reliability.outcomes import Outcome, report

FAVOURITES = ("fedavg", "scaffold", "local-only", "fedma")
"""Methods of which more is tried: nothing but weights, clients' states, no server model, growing layers."""
ENDED = {"before": -signal.SIGKILL, "after": -signal.SIGKILL, "half": -signal.SIGKILL}
SENTENCE = 2


@dataclass(frozen=True)
class Strike:
    """Which operation, and how."""

    at: int
    how: How


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    kept = Kept("crashes", options.seed, options.points, options.all, fresh=options.fresh)
    with tempfile.TemporaryDirectory(prefix="fedfuse-crashes-") as folder:
        try:
            for method in options.methods or METHODS:
                _try_method(method, options, kept, Path(folder))
        except KeyboardInterrupt:
            print("interrupted; the same command goes on")
            return 2
    return report([Outcome(**outcome) for outcome in kept.outcomes.values()], "method", "runs")


def _try_method(method: str, options: argparse.Namespace, kept: Kept, folder: Path) -> None:
    points = options.points * (8 if method in FAVOURITES else 1)
    if not options.all and all(f"{method} {place}" in kept.outcomes for place in range(points)):
        return
    trial = Trial(method, folder / method)
    for place, strikes in enumerate(plan(trial.operations, options.seed, None if options.all else points)):
        name = f"{method} {place}"
        if name not in kept.outcomes:
            fault = trial.fault_after(strikes)
            kept.add(name, asdict(Outcome(method, len(strikes), fault)))
            if fault:
                print(f"{method} {strikes}: {fault}", flush=True)
    print(f"{method}: {trial.operations} operations", flush=True)


def plan(operations: int, seed: int, points: int | None) -> Iterator[tuple[Strike, ...]]:
    """All ways at all operations, or so many of them."""
    draw = random.Random(f"{seed} {operations}")
    everything = [Strike(at, how) for at in range(1, operations + 1) for how in HOWS]
    for strike in everything if points is None else draw.sample(everything, min(points, len(everything))):
        again = Strike(draw.randint(1, operations), draw.choice(HOWS))
        yield (strike, again) if draw.random() < 1 / 3 else (strike,)


class Trial:
    """Runs of one method, of which the first was left alone."""

    def __init__(self, method: str, folder: Path) -> None:
        self.folder, self.config = folder, folder / "config.yaml"
        folder.mkdir(parents=True)
        federation = {"rounds": 3, "participation": 0.75, "checkpoint_every": 1}
        self.config.write_text(tiny_config(method, federation=federation, evaluation={"pictures": False}).to_yaml())
        counted = folder / "operations"
        straight = Forked(partial(self._count, folder / "straight", counted), folder / "log")
        straight.wait()
        if straight.code() != 0:
            raise RuntimeError(f"{method} does not even run: {straight.last_words()}")
        self.operations = int(counted.read_text())
        self.expected: Evidence = evidence(folder / "straight")

    def _count(self, out: Path, counted: Path) -> None:
        files = MortalFiles(out)
        self._run(out)
        counted.write_text(str(files.count))

    def _run(self, out: Path) -> None:
        command_line("run", str(self.config), "--out", str(out), "--resume", "--quiet", "--workers", "1")

    def _struck(self, out: Path, strike: Strike) -> None:
        MortalFiles(out, strike.at, strike.how)
        self._run(out)

    def fault_after(self, strikes: Sequence[Strike]) -> str:
        """What is wrong with a run that was struck so and then resumed."""
        out = self.folder / "run"
        shutil.rmtree(out, ignore_errors=True)
        try:
            for strike in strikes:
                process = Forked(partial(self._struck, out, strike), self.folder / "log")
                process.wait()
                if process.code() not in (0, ENDED.get(strike.how, SENTENCE)):
                    return f"ended with {process.code()}: {process.last_words()}"
            last = Forked(partial(self._run, out), self.folder / "log")
            last.wait()
        except HangsError as error:
            return str(error)
        if last.code() != 0:
            return f"does not go on: {last.last_words()}"
        if left := [path.name for path in out.rglob("*.tmp")]:
            return f"left {left}"
        differs = difference(evidence(out), self.expected)
        return f"differs in {differs}" if differs else ""


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*", help="only these (default: all)")
    few = parser.add_mutually_exclusive_group()
    few.add_argument("--points", type=at_least_one, default=8, help="of each method, and eight times as many of some")
    few.add_argument("--all", action="store_true", help="every operation in every way")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", action="store_true", help="forget what was tried")
    options = parser.parse_args(arguments)
    check_names(parser, "method", options.methods, METHODS)
    return options


if __name__ == "__main__":
    sys.exit(main())
