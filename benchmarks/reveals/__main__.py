"""Tables of docs/audit.md and docs/reveals.md: print them, and with ``--write`` put them there.

python -m benchmarks.reveals [audit] [methods] [digits] [mnist] [--write] [--folder .bench/reveals]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.page import write_table
from benchmarks.reveals import attacked, audits, methods
from fedfuse.core.errors import FedfuseError

DOCS = Path(__file__).parents[2] / "docs"
TABLES: dict[str, tuple[str, Callable[[Path], str]]] = {
    "audit": ("audit.md", attacked.table),
    "methods": ("reveals.md", methods.table),
    **{data: ("reveals.md", partial(audits.table, data=data)) for data in audits.DATA},
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    for name in options.tables or TABLES:
        page, table = DOCS / TABLES[name][0], TABLES[name][1]
        print(f"\n{name}\n", flush=True)
        try:
            text = table(Path(options.folder) / name)
        except FedfuseError as error:
            print(error)
            return 2
        if options.write:
            write_table(page, name, text)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reveals", description="What leaves a party.")
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], help="which of them (default: all)")
    parser.add_argument("--write", action="store_true", help="also into the pages")
    parser.add_argument("--folder", default=".bench/reveals", help="where runs are kept")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
