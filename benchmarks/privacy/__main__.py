"""The tables of docs/privacy.md: print them, and with ``--write`` put them there.

python -m benchmarks.privacy [speed] [digits] [mnist] [--write] [--seeds 0,1,2] [--folder .bench/privacy]
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

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
            PAGE.write_text(put(PAGE.read_text(encoding="utf-8"), name, text), encoding="utf-8")
    return 0


def _table(name: str, options: argparse.Namespace) -> str:
    if name == "speed":
        return speed.table(options.turns)
    seeds = [int(seed) for seed in options.seeds.split(",")]
    return table.table(table.PROBLEMS[name], seeds, Path(options.folder))


def put(page: str, name: str, text: str) -> str:
    """The page with a table between its marks."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    if begin not in page or end not in page:
        raise ValueError(f"the page has no place for results between {begin} and {end}")
    return re.sub(f"{begin}.*?{end}", f"{begin}\n{text}\n{end}", page, flags=re.DOTALL)


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
