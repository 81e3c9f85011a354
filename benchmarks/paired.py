"""What one change of an experiment does to its accuracy: runs with and without it, seed by seed, and the difference.

    python benchmarks/paired.py digits --change method.local.buffer_initial=true --set method=fedgkd --seeds 0,1,2

Both runs of a seed have everything else in common, so the difference varies less than the accuracies do. The table has
the mean over the seeds of the accuracy without the change, and of the difference with its standard error, in points.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import torch

from fedfuse import Experiment
from fedfuse.core.errors import FedfuseError

Curve = dict[int, float]
"""Accuracy by round."""


@dataclass(frozen=True)
class Row:
    """One round: percent without the change, points that the change adds, their standard error."""

    round: int
    without: float
    gain: float
    error: float


def curve(file: str, job: tuple[int, Sequence[str]]) -> Curve:
    """The least accurate prototype's accuracy after each round of one run, in one thread."""
    torch.set_num_threads(1)
    seed, assignments = job
    with tempfile.TemporaryDirectory() as folder:
        experiment = Experiment.load(file, (*assignments, f"seed={seed}"))
        history = experiment.run(Path(folder) / "run").history
    measured = {record.round: [p.accuracy for p in record.prototypes.values()] for record in history}
    return {number: min(a for a in all_ if a is not None) for number, all_ in measured.items() if None not in all_}


def rows(without: Sequence[Curve], changed: Sequence[Curve]) -> Iterator[Row]:
    """Round by round, over the rounds that all runs have."""
    for number in sorted(set.intersection(*(set(one) for one in (*without, *changed)))):
        before = [100 * one[number] for one in without]
        gains = [100 * two[number] - b for two, b in zip(changed, before, strict=True)]
        error = statistics.stdev(gains) / math.sqrt(len(gains)) if len(gains) > 1 else math.nan
        yield Row(number, statistics.fmean(before), statistics.fmean(gains), error)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="an experiment file or a preset")
    parser.add_argument("--change", action="append", required=True, metavar="KEY=VALUE", help="what is compared")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="what both have")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, each with one thread")
    options = parser.parse_args(arguments)
    seeds = [int(seed) for seed in options.seeds.split(",")]
    jobs = [(seed, changes) for changes in (options.set, [*options.set, *options.change]) for seed in seeds]
    try:
        for seed, assignments in jobs:
            Experiment.load(options.file, (*assignments, f"seed={seed}"))
    except FedfuseError as error:
        parser.error(str(error))
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        curves = list(pool.map(partial(curve, options.file), jobs))
    print(f"{'round':>5}  {'without':>7}  {'change':>7}  {'error':>6}")
    for row in rows(curves[: len(seeds)], curves[len(seeds) :]):
        print(f"{row.round:5}  {row.without:7.2f}  {row.gain:+7.2f}  {row.error:6.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
