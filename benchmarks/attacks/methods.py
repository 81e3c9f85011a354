"""One client of ten lies, with every published method and the defaults: what is left, and what its absence would leave.

python -m benchmarks.attacks.methods [feddf ...] [--seeds 2] [--jobs 2] [--write]
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

import torch

from benchmarks.attacks.grid import ATTACKS, FALSE_PREDICTIONS, PARTITIONS, REFUSED
from benchmarks.attacks.honest import PAGE
from benchmarks.attacks.play import accuracy_of, finished
from benchmarks.check_methods import Floors, plan
from benchmarks.page import write_table
from fedfuse import ConfigError, Experiment
from fedfuse.experiment.config.schema import overlay
from fedfuse.methods import METHODS

HONEST, GONE, CENTRAL = "none", "refused", "centralised"
LIES: Mapping[str, Sequence[Mapping[str, object]]] = {
    HONEST: (),
    **REFUSED,
    **{name: ATTACKS[name] for name in ("sign flip", "sign flip x 5", "label flip", "one class", "liar, sign flip")},
    **{say: FALSE_PREDICTIONS[say] for say in ("shifted", "constant")},
    "extras": ({"kind": "extras"},),
}
DIVISIONS = ("iid", "dirichlet 0.3")
LIAR = 3
Job = tuple[str, str, str, int]
"""Method, division, lie and seed."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attacks.methods", description=__doc__)
    parser.add_argument("methods", nargs="*", default=[name for name in METHODS if name != CENTRAL])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="also into docs/robustness.md")
    options = parser.parse_args(arguments)
    lines = [
        "| method | " + " | ".join(f"{name}: honest, absent, lies | costs most" for name in DIVISIONS) + " |",
        "|---" * (1 + 2 * len(DIVISIONS)) + "|",
    ]
    for method in options.methods:
        jobs = [(method, name, lie, seed) for name in DIVISIONS for lie in LIES for seed in range(options.seeds)]
        lines.append(row(method, _results(jobs, options.jobs)))
        print(lines[-1], flush=True)
    if options.write:
        write_table(PAGE, "every method", "\n".join(lines))


def _results(jobs: Sequence[Job], processes: int) -> Iterator[tuple[Job, float | None]]:
    with multiprocessing.get_context("spawn").Pool(processes, torch.set_num_threads, (1,)) as pool:
        yield from pool.imap(played, jobs)


def row(method: str, results: Iterator[tuple[Job, float | None]]) -> str:
    """One line: in each division the honest mean, that without the liar, the worst of all lies, and which that is."""
    reached: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (_, division, lie, _), accuracy in results:
        if accuracy is not None:
            reached[division, lie].append(accuracy)
    cells = [method]
    for division in DIVISIONS:
        means = {lie: fmean(reached[division, lie]) for lie in LIES if reached[division, lie]}
        honest, absent = means.pop(HONEST), means.pop(GONE)
        worst = min(means, key=lambda lie: means[lie])
        cells += [f"{honest:.1f}, {absent:.1f}, {means[worst]:.1f}", f"{honest - means[worst]:.1f} ({worst})"]
    return f"| {' | '.join(cells)} |"


def played(job: Job) -> tuple[Job, float | None]:
    """The accuracy in percent; None where there is nothing of the method to lie about in this way."""
    method, division, lie, seed = job
    floors = Floors.read()
    values = plan(floors, [method])[0].values
    of_ensemble = floors.of(method).measure == "ensemble"
    changes = {
        "seed": seed,
        "partition": {**PARTITIONS[division], "clients": 10},
        "federation": {"participation": 1.0},
        "training": {"epochs": 5} if values["federation"]["rounds"] > 1 else {},
        "evaluation": {"every": 1000, "ensemble": of_ensemble, "pictures": False},
        "attack": [{**one, "clients": [LIAR]} for one in LIES[lie]],
    }
    try:
        _, last = finished(Experiment(overlay(dict(values), changes)).config)
    except ConfigError:
        return job, None
    return job, accuracy_of(last, of_ensemble)


if __name__ == "__main__":
    main()
