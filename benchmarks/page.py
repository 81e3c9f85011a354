"""Pages of results: what stands between two marks of a page is a bench's, and all else is left as it is."""

from __future__ import annotations

from pathlib import Path

from fedfuse.core.files import write_text

BEGIN, END = "<!-- written by make bench: begin -->", "<!-- written by make bench: end -->"


def write_page(page: Path, results: str) -> None:
    """Replace all that ``make bench`` has written on its page."""
    write_text(page, _between(page.read_text(encoding="utf-8"), BEGIN, END, f"\n{results}\n"))


def write_table(page: Path, name: str, table: str) -> None:
    """Replace one table of a page, which its name marks."""
    write_text(page, put(page.read_text(encoding="utf-8"), name, table))


def put(page: str, name: str, table: str) -> str:
    """The text of a page with a table between its marks."""
    return _between(page, f"<!-- {name} -->", f"<!-- end of {name} -->", table)


def _between(page: str, begin: str, end: str, text: str) -> str:
    before, has_begin, rest = page.partition(begin)
    _, has_end, after = rest.partition(end)
    if not has_begin or not has_end:
        raise ValueError(f"the page has no place for results between {begin} and {end}")
    return f"{before}{begin}\n{text}\n{end}{after}"
