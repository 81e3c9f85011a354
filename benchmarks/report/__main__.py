"""Seconds and bytes of a page about many runs: ``python -m benchmarks.report [--runs 20] [--rounds 200]``.

The runs are made first, which is not measured. Every seed of a method is a run. Seconds are of a new process, from its
start to the written file: on the clock, and of the processor, which a busy machine changes less. Ends with 1 if the
page is larger than was promised, or takes more seconds of the processor.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.report.runs import Made, write_run

METHODS = ("fedavg", "fedprox", "feddf", "fedbe")
LARGEST, SLOWEST = 1_000_000, 10.0
"""Bytes and seconds of a page of 20 runs of 200 rounds."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--one-row-each", action="store_true", help="every run is a row of its own, not a seed")
    parser.add_argument("--keep", type=Path, help="where to leave the page")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.runs):
            write_run(Path(folder) / "runs" / str(number), _made(number, options))
        page = Path(folder) / "report.html"
        started = time.perf_counter()
        command = [sys.executable, "-m", "fedfuse", "report", str(Path(folder) / "runs"), "--out", str(page)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds, size = time.perf_counter() - started, page.stat().st_size
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        if options.keep:
            options.keep.write_bytes(page.read_bytes())
    work = used.ru_utime + used.ru_stime
    what = f"{options.runs} runs x {options.rounds} rounds"
    print(f"{what}: {size:,} bytes, {seconds:.1f} s, {work:.1f} s of the processor")
    return int(size > LARGEST or work > SLOWEST)


def _made(number: int, options: argparse.Namespace) -> Made:
    method = METHODS[number % len(METHODS)]
    level, size = 0.7 + 0.05 * (number % len(METHODS)), 1000 * (1 + number % len(METHODS))
    classes = tuple(f"class {place}" for place in range(10))
    seed, name = (0, f"study-{number}") if options.one_row_each else (number // len(METHODS), "study")
    return Made(method, seed, options.rounds, name=name, level=level, bytes_per_round=size, classes=classes)


if __name__ == "__main__":
    sys.exit(main())
