"""The table of four tasks: print it, and with ``--write`` put it into docs/merges.md.

python -m benchmarks.merging [--write] [--seeds 10] [--epochs 30]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from benchmarks.merging.contenders import Measured, measured
from benchmarks.merging.tasks import problem
from benchmarks.page import write_table

PAGE = Path(__file__).parents[2] / "docs" / "merges.md"
NAME = "four tasks"
"""What marks the table."""

AVERAGE = "average"
Results = Sequence[Mapping[str, Measured]]
"""By seed."""


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    torch.set_num_threads(1)
    began = time.process_time()
    results = [measured(problem(seed, options.epochs), seed) for seed in range(options.seeds)]
    text = table(results)
    print(text)
    print(f"\n{options.seeds} seeds, {time.process_time() - began:.0f} seconds of one core")
    if options.write:
        write_table(PAGE, NAME, text)


def table(results: Results) -> str:
    """Contenders by falling accuracy, in percent, with the deviation over seeds."""
    rows = sorted(results[0], key=lambda name: -statistics.mean(result[name].tuned for result in results))
    lines = ["| merge | tuned | above the average | chosen λ or α | by default |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *(_row(name, results) for name in rows)])


def _row(name: str, results: Results) -> str:
    own = [result[name] for result in results]
    above = [result[name].tuned - result[AVERAGE].tuned for result in results]
    chosen = sorted({one.chosen for one in own if one.chosen is not None})
    cells = [
        name,
        _percent([one.tuned for one in own]),
        "" if name == AVERAGE else _percent(above, sign="+"),
        " to ".join(f"{value:g}" for value in dict.fromkeys(chosen[:1] + chosen[-1:])),
        _percent([one.default for one in own if one.default is not None]),
    ]
    return f"| {' | '.join(cells)} |"


def _percent(shares: Sequence[float], sign: str = "") -> str:
    return f"{100 * statistics.mean(shares):{sign}z.1f} ± {100 * statistics.pstdev(shares):.1f}" if shares else ""


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.merging", description="Merges of four tasks.")
    parser.add_argument("--write", action="store_true", help="also into docs/merges.md")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=30, help="of fine-tuning")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
