"""Measure what is missing, print the tables, and with ``--write`` put them into docs/results/attacks.md, and the worst
of all attacks into docs/robustness.md.

python -m benchmarks.attacks [digits mnist] [--families one-fedavg fedavg ...] [--shares 0.4] [--seeds 2] [--write]

Results lie in ``.attacks``, so that an interrupted bench goes on; remove it to measure anew. Tables are made of all
that lies there, whatever was measured this time. A dataset that is not on this machine is passed over.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import torch

from benchmarks.attacks.grid import DATA, FAMILIES, SHARES, cells
from benchmarks.attacks.play import Job, Numbers, measured
from benchmarks.attacks.store import Store
from benchmarks.attacks.tables import everything, summary
from benchmarks.page import write_table
from fedfuse.core.errors import FedfuseError

ROOT = Path(__file__).parents[2]
STORE = ROOT / ".attacks"
PAGES: Mapping[Path, Callable[[Store, str], str]] = {
    ROOT / "docs" / "results" / "attacks.md": everything,
    ROOT / "docs" / "robustness.md": summary,
}


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    families = tuple(options.families)
    for data in options.data:
        store = Store(STORE / f"{data}.jsonl")
        wanted = [cell for cell in cells(data, families) if cell.share in (0.0, *options.shares)]
        missing = [(cell, seed) for seed in range(options.seeds) for cell in wanted if not store.has(cell, seed)]
        if not _is_there(data, missing):
            continue
        _measure(missing, store, options.jobs)
        for page, tables in PAGES.items():
            results = tables(store, data)
            print(results)
            if options.write:
                write_table(page, f"attacks on {data}", f"\n{results}\n")


def _measure(jobs: Sequence[Job], store: Store, processes: int) -> None:
    began = time.perf_counter()
    for done, ((cell, seed), numbers) in enumerate(_results(jobs, processes), start=1):
        store.add(cell, seed, numbers)
        spent = time.perf_counter() - began
        left = spent / done * (len(jobs) - done)
        print(f"\r{done} of {len(jobs)}, about {left / 60:.0f} minutes left  ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def _results(jobs: Sequence[Job], processes: int) -> Iterator[tuple[Job, Numbers]]:
    if processes == 1:
        torch.set_num_threads(1)
        yield from map(measured, jobs)
        return
    with multiprocessing.get_context("spawn").Pool(processes, torch.set_num_threads, (1,)) as pool:
        yield from pool.imap_unordered(measured, jobs, chunksize=8)


def _is_there(data: str, missing: Sequence[Job]) -> bool:
    """Whether its examples can be had; where nothing is missing, nobody needs them."""
    try:
        for job in missing[:1]:
            measured(job)
    except FedfuseError as reason:
        print(f"{data} is passed over: {reason}", file=sys.stderr)
        return False
    return True


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attacks", description="Defences against attacks.")
    parser.add_argument("data", nargs="*", default=["digits", "mnist"], metavar="DATA", help=f"of {', '.join(DATA)}")
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--shares", nargs="+", type=float, default=list(SHARES), choices=list(SHARES))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--write", action="store_true", help="also into the pages")
    options = parser.parse_args(arguments)
    for data in options.data:
        if data not in DATA:
            parser.error(f"unknown data '{data}'; there are {', '.join(DATA)}")
    return options


if __name__ == "__main__":
    main()
