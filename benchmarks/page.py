"""The page of results: what stands between its two marks is the bench's."""

from __future__ import annotations

from pathlib import Path

from fedfuse.core.files import write_text

BEGIN, END = "<!-- written by make bench: begin -->", "<!-- written by make bench: end -->"


def write_page(page: Path, results: str) -> None:
    """Replace what stands between the marks."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no place for results between {BEGIN} and {END}")
    write_text(page, f"{before}{BEGIN}\n\n{results}\n\n{END}{after}")
