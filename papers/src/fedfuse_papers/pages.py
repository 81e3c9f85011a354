"""All results so far as Markdown pages: one per entry, and a list of what was run and what was not."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from fedfuse.plugins import write_text
from fedfuse_papers.entries import PAPERS, load_entry, names
from fedfuse_papers.entry import ScaleName
from fedfuse_papers.output import markdown_table
from fedfuse_papers.store import Store, finished_cells

SCALES_THAT_COUNT: tuple[ScaleName, ...] = ("paper", "small")
"""The numbers of ``smoke`` mean nothing."""
INDEX = "tables.md"


def write_pages(store: Store, folder: Path) -> list[Path]:
    """Write the list and a page for every entry that was run at a scale that counts."""
    ran = {name: [scale for scale in SCALES_THAT_COUNT if store.last(name, scale)] for name in names()}
    pages = [folder / INDEX]
    write_text(pages[0], _index(store))
    for name, scales in ran.items():
        if scales:
            pages.append(folder / _page(name))
            write_text(pages[-1], "\n".join(_section(store, name, scale, folder) for scale in scales))
    return pages


def _page(name: str) -> str:
    return f"{name.replace('/', '-')}.md"


def _section(store: Store, name: str, scale: ScaleName, folder: Path) -> str:
    text = store.table(name, scale, ".md").read_text(encoding="utf-8")
    picture = store.table(name, scale, ".png")
    if not picture.exists():
        return text
    shutil.copyfile(picture, folder / picture.name)
    return f"{text}\n![{name} at scale {scale}]({picture.name})\n"


def _index(store: Store) -> str:
    parts = ["# Tables and figures of the papers: what was run"]
    parts.append(
        "Cells with all their seeds of all cells, and what became of the paper's claims. Written by "
        "`fedfuse reproduce --pages`; an entry without a link was not run."
    )
    for paper, citation in PAPERS.items():
        own = [name for name in names() if name.startswith(f"{paper}/")]
        parts += [
            f"## {citation}",
            markdown_table(("entry", "about", *SCALES_THAT_COUNT), [_line(store, n) for n in own]),
        ]
    return "\n\n".join(parts) + "\n"


def _line(store: Store, name: str) -> tuple[str, ...]:
    last = [store.last(name, scale) for scale in SCALES_THAT_COUNT]
    link = f"[{name}]({_page(name)})" if any(last) else name
    return (link, load_entry(name).title.partition(", ")[2], *map(_state, last))


def _state(last: dict[str, Any] | None) -> str:
    if last is None:
        return "not run"
    answers = Counter(verdict["answer"] for verdict in last["verdicts"])
    claims = [f"{answer}: {count}" for answer, count in answers.items()]
    return "; ".join([f"{finished_cells(last)} of {len(last['rows'])} cells", f"seeds: {len(last['seeds'])}", *claims])
