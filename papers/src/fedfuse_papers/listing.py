"""The list of tables and figures: what each needs, how long it would take here, what was found last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from rich.markup import escape
from rich.padding import Padding

from fedfuse import expected_seconds, list_datasets
from fedfuse.plugins import console
from fedfuse_papers.cells import cells_of
from fedfuse_papers.entries import PAPERS, load_entry, names
from fedfuse_papers.entry import SCALES, Entry, ScaleName
from fedfuse_papers.store import Store, finished_cells


def list_entries(store: Store) -> None:
    """Every table and figure: what it needs, how long it would take here, what was found last."""
    at_hand = {name: row.at_hand for name, row in list_datasets().items()}
    for paper, citation in PAPERS.items():
        console.print(f"\n[bold]{escape(citation)}[/]", highlight=False)
        for name in names():
            if name.startswith(f"{paper}/"):
                entry = load_entry(name)
                times = ", ".join(f"{scale} {_time(name, entry, scale, store)}" for scale in get_args(ScaleName))
                console.print(f"[bold]{name}[/]  {escape(entry.title.partition(', ')[2])}", highlight=False)
                facts = f"needs {_needs(name, entry, at_hand)}; takes {times}; {_state(name, store)}"
                console.print(Padding(escape(facts), (0, 0, 0, 4)), style="dim", highlight=False)
    console.print(
        "\nTimes are orders of magnitude for one process on this machine. A dataset in brackets is not at hand, of "
        "one marked (part) less than the whole. "
        "fedfuse reproduce ENTRY --scale small runs one; --show prints its last result.",
        highlight=False,
    )


def duration(seconds: float) -> str:
    """A rough time in words."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.2g} {unit}" if seconds < 10 * length else f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"


def _time(name: str, entry: Entry, scale: ScaleName, store: Store) -> str:
    cells = cells_of(name, entry, scale)
    if not all(cell.is_possible for cell in cells):
        return "-"
    seconds = expected_seconds([cell.experiment(0) for cell in cells], store.speed)
    return "-" if seconds is None else duration(entry.scales[scale].seeds * seconds)


def _needs(name: str, entry: Entry, at_hand: Mapping[str, str]) -> str:
    sets = dict.fromkeys(
        data["name"]
        for cell in cells_of(name, entry, "paper")
        for data in (cell.raw["data"], cell.raw.get("source", {}).get("data"))
        if data
    )
    said = {"no": "({})", "part": "{} (part)", "yes": "{}"}
    return ", ".join(said[at_hand[one]].format(one) for one in sets)


def _state(name: str, store: Store) -> str:
    states = []
    for scale in SCALES:
        last = store.last(name, scale)
        if last is not None:
            states.append(f"{scale} {finished_cells(last)}/{len(last['rows'])}")
    return f"last result: {', '.join(states)} cells" if states else "not run yet"
