"""Curves and maps in a cell of a notebook: the drawings of the page, with a style that fits light and dark themes."""

from __future__ import annotations

from collections.abc import Sequence

from fedfuse.report.page.charts import Drawn, Frame, chart, marks, swatch
from fedfuse.report.page.data import Shares
from fedfuse.report.page.html import Content, Html, element
from fedfuse.report.page.partition import partition_map
from fedfuse.report.page.tables import SHADES
from fedfuse.report.palette import COLOURS

MOST_LINES = 12
"""In one picture; a page has room for more."""
OVER_ROUNDS = "test accuracy in percent over rounds"
BOX = "fedfuse-figure"
# A notebook has a theme of its own, which no style sheet is told of: letters and grids are the colour of its text.
RULES = {
    ".plot": "position:relative;height:12rem;max-width:36rem;margin:.75rem .75rem 2rem 3rem",
    ".plot.cells": "margin-left:6rem",
    ".plot>svg": "position:absolute;inset:0;width:100%;height:100%;max-width:none;overflow:visible",
    ".plot text": "fill:currentColor;opacity:.75;font-size:.75rem",
    ".up": "text-anchor:end",
    ".across": "text-anchor:middle",
    ".grid": "stroke:currentColor;opacity:.15",
    "line.target": "stroke:currentColor;stroke-dasharray:1 3",
    ".stroke": "fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;vector-effect:non-scaling-stroke",
    ".d1.stroke,.BOX .d1 .stroke": "stroke-dasharray:7 4",
    ".d2.stroke,.BOX .d2 .stroke": "stroke-dasharray:2 3",
    ".mark,.BOX .swatch use": "fill:currentColor",
    ".band": "fill:currentColor;opacity:.14",
    ".signs": "position:absolute;width:0;height:0",
    ".swatch": "overflow:visible;vertical-align:middle",
    ".legend span": "margin-right:1.25rem;white-space:nowrap",
    **{f".k{place}": f"color:{colour}" for place, colour in enumerate(COLOURS)},
    **{f".f{level}": f"fill:{COLOURS[0]};opacity:{level / SHADES:g}" for level in range(1, SHADES + 1)},
}


def curves(
    names: Sequence[str], lines: Sequence[Drawn], target: float | None = None, caption: str = OVER_ROUNDS
) -> Html:
    """Lines in percent with their names; nothing if there is nothing to draw. ``target`` is a share."""
    shown = lines[:MOST_LINES]
    frame = Frame.around(shown)
    if frame is None:
        return Html("")
    entries = [element("span", swatch(line.look), " ", name) for line, name in zip(shown, names, strict=False)]
    legend = [element("div", *entries, class_="legend")] if len(lines) > 1 else []
    left_out = f"; the first {len(shown)} of {len(lines)} lines" if len(shown) < len(lines) else ""
    picture = chart(shown, frame, caption, None if target is None else 100 * target)
    shades = "; shades go from the lowest to the highest seed" if any(line.low for line in shown) else ""
    return _figure(*legend, element("div", picture, class_="plot"), element("div", f"{caption}{shades}{left_out}"))


def partition_figure(shares: Shares) -> Html:
    """Who has which examples: a column for each client, a row for each class; of too many, the words alone."""
    words = element("div", shares.words)
    if not shares.counts:
        return words
    together = f", {shares.neighbours} neighbours together" if shares.neighbours > 1 else ""
    caption = element("div", f"classes by client{together}; the darker, the more examples")
    return _figure(words, element("div", partition_map(shares), class_="plot cells"), caption)


def _figure(*content: Content) -> Html:
    """Cells may be shown each in a frame of its own, so that every picture brings its signs and its style."""
    rules = "".join(f".{BOX} {of.replace('BOX', BOX)}{{{rule}}}" for of, rule in RULES.items())
    return element("div", Html(f"<style>{rules}</style>"), marks(), *content, class_=BOX)
