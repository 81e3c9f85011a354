"""The tables of docs/privacy.md: print them, and with ``--write`` put them there.

python -m benchmarks.privacy [speed] [digits] [mnist] [--write] [--seeds 0,1,2] [--folder .bench/privacy]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.page import write_table
from benchmarks.privacy import speed, table
from fedfuse.core.errors import FedfuseError

PAGE = Path(__file__).parents[2] / "docs" / "privacy.md"
TABLES = ("speed", *table.PROBLEMS)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    for name in options.tables or TABLES:
        print(f"\n{name}\n", flush=True)
        try:
            text = _table(name, options)
        except FedfuseError as error:
            print(error)
            return 2
        if options.write:
            write_table(PAGE, name, text)
    return 0


def _table(name: str, options: argparse.Namespace) -> str:
    if name == "speed":
        return speed.table(options.turns)
    seeds = [int(seed) for seed in options.seeds.split(",")]
    return table.table(table.PROBLEMS[name], seeds, Path(options.folder))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.privacy", description="What privacy costs.")
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], help="which of them (default: all)")
    parser.add_argument("--write", action="store_true", help="also into docs/privacy.md")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--turns", type=int, default=30, help="of a step's measurement")
    parser.add_argument("--folder", default=".bench/privacy", help="where runs are kept")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
