"""Which method when: the same methods in different situations, the table of docs/which-method.md.

python -m benchmarks.which_method [--write] [--seeds 3] [--out runs/which-method]

Handwritten digits, ten clients, fifteen rounds, unless the situation says otherwise. Runs that are in the folder are
kept, so that an interrupted bench goes on.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import fedfuse
from benchmarks.page import write_table

PAGE = Path(__file__).parents[1] / "docs" / "which-method.md"

METHODS = ["fedavg", "scaffold", "fedgkd", "fedgen", "feddf", "fedbe", "ds-fl", "feded-w1"]

SMALL, LARGE = {"arch": "mlp", "hidden": [64], "projection_head": 32}, {"arch": "cnn3", "projection_head": 32}
SITUATIONS: Mapping[str, Mapping[str, Any]] = {
    "classes alike (α = 100)": {"partition": {"alpha": 100}},
    "two or three classes each (α = 0.05)": {},
    "two architectures (α = 0.3)": {"partition": {"alpha": 0.3}, "models": {"small": SMALL, "large": LARGE}},
    "one round, all there (α = 0.5)": {
        "partition": {"alpha": 0.5},
        "federation": {"rounds": 1, "participation": 1.0},
    },
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.which_method", description=__doc__)
    parser.add_argument("--write", action="store_true", help="also into docs/which-method.md")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/which-method"))
    options = parser.parse_args(arguments)
    table = situations(range(options.seeds), options.out)
    print(table)
    if options.write:
        write_table(PAGE, "situations", table)


def situations(seeds: Sequence[int], out: Path) -> str:
    """A row for every method, a column for every situation: accuracy after the last round in percent, best in bold."""
    columns = {
        name: accuracies(changes, seeds, out / f"situation-{number}")
        for number, (name, changes) in enumerate(SITUATIONS.items(), 1)
    }
    lines = [f"| method | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    best = {name: max(fmean(values) for values in column.values()) for name, column in columns.items()}
    for method in METHODS:
        cells = [_cell(column.get(method), best[name]) for name, column in columns.items()]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def accuracies(changes: Mapping[str, Any], seeds: Sequence[int], out: Path) -> dict[str, list[float]]:
    """By method, for each seed: of several models the mean."""
    table = fedfuse.compare(
        "digits", methods=METHODS, seeds=list(seeds), out=out, **{"models": {"mlp": SMALL}, **changes}
    )
    by_run = defaultdict[tuple[str, int], list[float]](list)
    for row in table.records():
        by_run[row["method"], row["seed"]].append(row["accuracy_last"])
    return {method: [fmean(by_run[method, seed]) for seed in seeds] for method in METHODS}


def _cell(values: Sequence[float] | None, best: float) -> str:
    if not values:
        return "-"
    text = f"{100 * fmean(values):.1f} ± {100 * pstdev(values):.1f}"
    return f"**{text}**" if fmean(values) == best else text


if __name__ == "__main__":
    main()
