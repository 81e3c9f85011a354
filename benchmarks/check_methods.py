"""Does every method of the registry still learn? Runs each on digits, and compares with its floor.

The experiment and the floors are in ``method_floors.yaml``. Ends with 1 if a method is below its floor or has none.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import torch
import yaml
from pydantic import Field

from fedfuse import Experiment
from fedfuse.core.errors import unknown
from fedfuse.core.part import Settings
from fedfuse.experiment.config.schema import overlay
from fedfuse.methods import METHODS

FLOORS = Path(__file__).with_name("method_floors.yaml")
MARGIN = 0.03
"""How far below the measured mean a floor is set."""


class Expectation(Settings):
    """What a method must reach, and in which variation of the common experiment."""

    floor: float | None = Field(None, gt=0, lt=1)
    measure: Literal["model", "ensemble"] = "model"
    experiment: dict[str, Any] = Field(default_factory=dict)


class Floors(Settings):
    """The table of floors."""

    seeds: tuple[int, ...] = Field(min_length=1)
    experiment: dict[str, Any]
    methods: dict[str, Expectation]

    @staticmethod
    def read(path: Path = FLOORS) -> Floors:
        return Floors.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))

    def of(self, method: str) -> Expectation:
        return self.methods.get(method, Expectation())


@dataclass(frozen=True)
class Job:
    """One run: a method with one seed."""

    method: str
    seed: int
    measure: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What one run reached, or why it did not get to its end."""

    method: str
    accuracy: float
    seconds: float
    failure: str = ""


@dataclass(frozen=True)
class Verdict:
    """One line of the table."""

    method: str
    floor: float | None
    accuracies: tuple[float, ...]
    seconds: float
    failure: str

    @property
    def mean(self) -> float:
        return statistics.fmean(self.accuracies)

    @property
    def complaint(self) -> str:
        """A sentence if something is wrong with this method, else nothing."""
        if self.failure:
            return f"{self.method} failed: {self.failure}"
        if self.floor is None:
            return (
                f"{self.method} has no floor: add '{self.method}: {{floor: {suggested_floor(self.mean):.2f}}}' to "
                f"methods in {FLOORS.name} if {self.mean:.4f} is what a sound run reaches"
            )
        if not self.mean >= self.floor:  # so that not-a-number is below every floor
            return f"{self.method} reaches {self.mean:.4f}, below its floor of {self.floor:.2f}"
        return ""


def suggested_floor(mean: float) -> float:
    return max(math.floor(100 * (mean - MARGIN)) / 100, 0.01)


def plan(floors: Floors, methods: Sequence[str]) -> list[Job]:
    """The runs, method by method."""
    jobs = []
    for method in methods:
        expected = floors.of(method)
        values = overlay({**floors.experiment, "method": {"name": method}}, expected.experiment)
        jobs += [Job(method, seed, expected.measure, {**values, "seed": seed}) for seed in floors.seeds]
    return jobs


def run(job: Job) -> Outcome:
    """One run, in one thread."""
    torch.set_num_threads(1)
    begun = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory() as folder:
            result = Experiment(job.values).run(Path(folder) / "run")
    except Exception as error:  # one broken method must not hide what the others do
        sentence = f"seed {job.seed}: {type(error).__name__}: {error}"
        return Outcome(job.method, math.nan, time.perf_counter() - begun, sentence)
    ensemble = result.history[-1].ensemble_accuracy
    reached = ensemble if job.measure == "ensemble" else min(result.accuracy.values())
    seconds = time.perf_counter() - begun
    return Outcome(job.method, math.nan if reached is None else reached, seconds)


def judge(floors: Floors, outcomes: Sequence[Outcome]) -> list[Verdict]:
    """One verdict per method, in the order in which they ran."""
    verdicts = []
    for method in dict.fromkeys(outcome.method for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.method == method]
        failure = next((outcome.failure for outcome in own if outcome.failure), "")
        accuracies = tuple(outcome.accuracy for outcome in own)
        seconds = sum(outcome.seconds for outcome in own)
        verdicts.append(Verdict(method, floors.of(method).floor, accuracies, seconds, failure))
    return verdicts


def table(verdicts: Sequence[Verdict]) -> Iterator[str]:
    width = max(len(verdict.method) for verdict in verdicts)
    seeds = 7 * len(verdicts[0].accuracies)
    yield f"{'method':<{width}}   floor    mean   {'by seed':<{seeds}}      s"
    for verdict in verdicts:
        floor = "none" if verdict.floor is None else f"{verdict.floor:.2f}"
        by_seed = " ".join(f"{accuracy:.4f}" for accuracy in verdict.accuracies)
        mark = "  <--" if verdict.complaint else ""
        yield f"{verdict.method:<{width}}  {floor:>6}  {verdict.mean:.4f}   {by_seed}  {verdict.seconds:6.1f}{mark}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*", help="only these methods (default: all)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, each with one thread")
    parser.add_argument("--floors", type=Path, default=FLOORS, help="another table of floors")
    options = parser.parse_args(arguments)
    floors = Floors.read(options.floors)
    for method in (*options.methods, *floors.methods):
        if method not in METHODS:
            parser.error(unknown("method", method, METHODS))
    jobs = plan(floors, options.methods or list(METHODS))
    begun = time.perf_counter()
    if options.jobs == 1:
        outcomes = [run(job) for job in jobs]
    else:
        # fork would copy torch's thread pools into a state that they cannot leave
        with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
            outcomes = list(pool.map(run, jobs))
    verdicts = judge(floors, outcomes)
    print("\n".join(table(verdicts)))
    complaints = [verdict.complaint for verdict in verdicts if verdict.complaint]
    print(f"{len(verdicts)} methods in {time.perf_counter() - begun:.0f} s, {len(complaints)} not as they should be")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
