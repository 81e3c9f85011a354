"""Tables in the house style."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.table import Table


def table(
    *columns: str, title: str | None = None, numbers: tuple[str, ...] = (), first_may_wrap: bool = False
) -> Table:
    """An empty table in the house style; the columns named in ``numbers`` are right-aligned; nothing is cut."""
    result = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for index, column in enumerate(columns):
        number = column in numbers
        whole = number or (index == 0 and not first_may_wrap)
        result.add_column(column, justify="right" if number else "left", no_wrap=whole, overflow="fold")
    return result
