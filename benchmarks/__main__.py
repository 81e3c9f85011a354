"""W1 to W8 against loops written by hand and against peers (docs/performance.md).

    python -m benchmarks                                  everything, as make bench
    python -m benchmarks W3 W5 --turns 5                  some of it
    python -m benchmarks --quick --no-peers               a first look
    python -m benchmarks W1 --set compute.threads=2       other settings of fedfuse

An interrupted bench goes on where it was, as long as the code is the same.
"""

from __future__ import annotations

import argparse
import hashlib
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.page import write_page
from benchmarks.peers.environments import python_of
from benchmarks.peers.peer import ROOT, WORKLOADS, pythons_of, with_peers
from fedfuse.cli.bench import BenchProgress, show
from fedfuse.cli.console import console, print_facts
from fedfuse.core.errors import ConfigError
from fedfuse.core.files import write_text
from fedfuse.experiment.bench.measure import carry_out, pick
from fedfuse.experiment.bench.sheets import markdown
from fedfuse.experiment.bench.turns import Kept, Plan
from fedfuse.experiment.bench.workloads.base import SizeName, Workload

FOLDER = ROOT / ".bench"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # who is ended ends the contender under way, too
    try:
        workloads = pick(options.workloads)
    except ConfigError as error:
        console.print(str(error), style="red", markup=False)
        return 2
    size: SizeName = "quick" if options.quick else "full"
    contenders = workloads if options.no_peers else _joined(workloads)
    plan = Plan(contenders, size, options.turns, FOLDER, tuple(options.set))
    kept = Kept(FOLDER / "turns" / f"{_identity(plan)}.jsonl")
    if options.fresh:
        kept = Kept.anew(kept.path)
    try:
        with BenchProgress(console) as progress:
            done = carry_out(plan, kept, progress)
    except KeyboardInterrupt:
        console.print("interrupted; finished turns are kept, and the same command goes on")
        return 2
    show(done)
    write_text(options.out, done.to_json() + "\n")
    if options.page is not None:
        write_page(options.page, markdown(done))
    print_facts(json=options.out, **({"page": options.page} if options.page else {}))
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workloads", nargs="*", metavar="W1", help="only these (default: all)")
    parser.add_argument("--turns", type=int, default=3, help="of each contender (default: 3)")
    parser.add_argument("--quick", action="store_true", help="smaller ones, fewer of them")
    parser.add_argument("--no-peers", action="store_true", help="only loops and fedfuse")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of fedfuse's experiments")
    parser.add_argument("--fresh", action="store_true", help="forget turns that were kept")
    parser.add_argument("--out", type=Path, default=FOLDER / "results.json", help="everything as JSON")
    parser.add_argument("--page", type=Path, help="a page whose marked place gets the tables")
    return parser.parse_args(arguments)


def _joined(workloads: Sequence[Workload]) -> list[Workload]:
    """With peers, whose environments are made now if they are not there."""
    if not any(workload.code in WORKLOADS for workload in workloads):
        return list(workloads)
    tell = partial(console.print, highlight=False, markup=False)
    pythons = pythons_of(lambda peer: python_of(peer, FOLDER, tell))
    return [with_peers(workload, pythons) for workload in workloads]


def _identity(plan: Plan) -> str:
    """Of the code and of what it is told: turns of other code do not count."""
    code = [_git("rev-parse", "HEAD:src", "HEAD:benchmarks"), _git("diff", "HEAD", "--", "src", "benchmarks")]
    return hashlib.sha256("\n".join([*code, plan.size, *plan.assignments]).encode()).hexdigest()[:12]


def _git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False).stdout


if __name__ == "__main__":
    sys.exit(main())
