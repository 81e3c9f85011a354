"""Who had which examples, as inline SVG: the darker a cell, the more examples of that class the client has."""

from __future__ import annotations

from fedfuse.report.limits import round_ticks
from fedfuse.report.page.charts import UNITS, percent
from fedfuse.report.page.data import Shares
from fedfuse.report.page.html import Html, element, empty
from fedfuse.report.page.tables import SHADES

MOST_NAMES = 12
"""Clients and classes that are named on the axes."""


def partition_map(shares: Shares) -> Html:
    """A cell for each class and client; cells of one shade are one path."""
    columns, rows = len(shares.clients), len(shares.classes)
    full = max((count for counts in shares.counts for count in counts), default=0) or 1
    paths: dict[int, str] = {}
    width, height = UNITS / max(columns, 1), UNITS / max(rows, 1)
    for row, counts in enumerate(shares.counts):
        for column, count in enumerate(counts):
            if count:
                level = max(1, round(SHADES * count / full))
                left, top = round(column * width), round(row * height)
                right, bottom = round((column + 1) * width), round((row + 1) * height)
                cell = f"M{left},{top}h{right - left}v{bottom - top}h{left - right}z"
                paths[level] = paths.get(level, "") + cell
    cells = [empty("path", d=path, class_=f"f{level}") for level, path in sorted(paths.items())]
    size = {"width": "100%", "height": "100%"}
    box = element("svg", *cells, class_="lines", viewBox=f"0 0 {UNITS} {UNITS}", preserveAspectRatio="none", **size)
    return element("svg", box, *_names(shares), role="img", aria_label=f"partition: {shares.words}")


def _names(shares: Shares) -> list[Html]:
    rows, columns = shares.classes, shares.clients
    up = [(_short(rows[place]), percent((place + 0.5) / len(rows))) for place in _some(len(rows))]
    across = [(_short(columns[place]), percent((place + 0.5) / len(columns))) for place in _some(len(columns))]
    return [
        *(element("text", name, x=-6, y=place, dy="0.35em", class_="up") for name, place in up),
        *(element("text", name, x=place, y="100%", dy="1.3em", class_="across") for name, place in across),
    ]


def _some(count: int) -> list[int]:
    """Places at round distances."""
    return [int(place) for place in round_ticks(0, count - 1, MOST_NAMES, whole=True)] if count > 1 else [0] * count


def _short(name: str) -> str:
    return name if len(name) <= 10 else f"{name[:9]}…"


def levels(full: float) -> list[tuple[str, str]]:
    """For a legend: a few shades, and how many examples each stands for."""
    return [(f"f{level}", f"{full * level / SHADES:,.0f}") for level in (1, SHADES // 2, SHADES)]
