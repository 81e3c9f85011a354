"""Line charts as inline SVG that fit any width: lines are stretched, letters and marks are not.

A chart has no width of its own. Places are percentages of the box in which it stands; the lines lie in an inner box of
1000 x 1000 units that is stretched over it, with strokes that keep their breadth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedfuse.report.limits import accuracy_limits, round_ticks
from fedfuse.report.page.html import Content, Html, element, empty
from fedfuse.report.palette import COLOURS, DASHES, MARKERS

UNITS = 1000
MOST_POINTS = 250
"""Of one line; more than a screen has columns."""
MOST_MARKS = 10
TICKS_ACROSS, TICKS_UP = 6, 5
Points = Sequence[tuple[float, float]]
MARKS = {
    "o": "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",
    "s": "M-3.5,-3.5h7v7h-7z",
    "^": "M0,-4.5L4.5,3.5H-4.5z",
    "D": "M0,-5L5,0L0,5L-5,0z",
    "v": "M0,4.5L4.5,-3.5H-4.5z",
}


@dataclass(frozen=True)
class Drawn:
    """One line with the sign of its place in the palette, and what is shaded around it; values are percentages."""

    look: int
    points: Points
    low: Points = ()
    high: Points = ()
    kind: str = ""
    """A further class of its stroke."""


@dataclass(frozen=True)
class Frame:
    """From where to where both axes go."""

    left: float
    right: float
    bottom: float
    top: float

    @staticmethod
    def around(lines: Sequence[Drawn], left: float | None = None, right: float | None = None) -> Frame | None:
        """None if there is nothing to draw; ``left`` and ``right`` are where the axis goes anyhow."""
        everything = [point for line in lines for point in (*line.points, *line.low, *line.high)]
        if not everything:
            return None
        across, up = [x for x, _ in everything], [y for _, y in everything]
        bottom, top = accuracy_limits(max(0.0, min(up)), min(100.0, max(up)))
        first, last = min(across) if left is None else left, max(across) if right is None else right
        return Frame(first, last, bottom, top)

    def across(self, value: float) -> float:
        """As a share of the width; a single value stands in the middle."""
        return (value - self.left) / (self.right - self.left) if self.right > self.left else 0.5

    def up(self, value: float) -> float:
        """As a share of the height, from the top."""
        return 1 - (value - self.bottom) / (self.top - self.bottom)


def look_classes(look: int) -> str:
    """Colour and dashes of a line; colours come again in other dashes."""
    return f"k{look % len(COLOURS)} d{look // len(COLOURS) % len(DASHES)}"


def chart(lines: Sequence[Drawn], frame: Frame, label: str, target: float | None = None, unit: str = "") -> Html:
    """The picture for a box of any size; ``label`` is what it is for those who do not see it."""
    inner: list[Content] = [_band(line, frame) for line in lines if line.low]
    inner += [_line(line, frame) for line in lines if line.points]
    box = element(
        "svg",
        *inner,
        class_="lines",
        viewBox=f"0 0 {UNITS} {UNITS}",
        preserveAspectRatio="none",
        width="100%",
        height="100%",
    )
    marks = [_marks(line, frame) for line in lines if not line.kind]
    return element("svg", *_grid(frame, unit), _target(target, frame), box, *marks, role="img", aria_label=label)


def marks() -> Html:
    """The signs that charts use, once on a page."""
    shapes = [element("symbol", empty("path", d=path), id=f"m{place}", overflow="visible") for place, path in _marked()]
    return element("svg", *shapes, class_="signs", aria_hidden="true")


def _marked() -> list[tuple[int, str]]:
    return [(place, MARKS[name]) for place, name in enumerate(MARKERS)]


def swatch(look: int) -> Html:
    """A piece of a line, for a legend."""
    line = empty("path", d="M0,7H28", class_="stroke")
    mark = empty("use", href=f"#m{look % len(MARKERS)}", x=14, y=7)
    return element("svg", line, mark, class_=f"swatch {look_classes(look)}", width=28, height=14, aria_hidden="true")


def _grid(frame: Frame, unit: str) -> list[Html]:
    found = []
    for value in round_ticks(frame.bottom, frame.top, TICKS_UP):
        place = percent(frame.up(value))
        found.append(empty("line", x1=0, x2="100%", y1=place, y2=place, class_="grid"))
        found.append(element("text", f"{value:g}", x=-6, y=place, dy="0.35em", class_="up"))
    whole = unit == ""
    for value in round_ticks(frame.left, frame.right, TICKS_ACROSS, whole):
        place = percent(frame.across(value))
        found.append(empty("line", x1=place, x2=place, y1=0, y2="100%", class_="grid"))
        found.append(element("text", f"{value:g}", x=place, y="100%", dy="1.3em", class_="across"))
    return found


def _target(target: float | None, frame: Frame) -> Html:
    if target is None or not frame.bottom <= target <= frame.top:
        return Html("")
    place = percent(frame.up(target))
    line = empty("line", x1=0, x2="100%", y1=place, y2=place, class_="target")
    return Html(line + element("text", f"target {target:g} %", x=6, y=place, dy="-0.4em", class_="target"))


def _line(line: Drawn, frame: Frame) -> Html:
    return empty("path", d=_path(line.points, frame), class_=f"stroke {look_classes(line.look)} {line.kind}".strip())


def _band(line: Drawn, frame: Frame) -> Html:
    there, back = _path(line.high, frame), _path(line.low[::-1], frame)
    return empty("path", d=f"{there}L{back[1:]}z", class_=f"band k{line.look % len(COLOURS)}")


def _marks(line: Drawn, frame: Frame) -> Html:
    every = max(1, -(-len(line.points) // MOST_MARKS))
    shown = [point for place, point in enumerate(line.points) if (len(line.points) - 1 - place) % every == 0]
    name = f"#m{line.look % len(MARKERS)}"
    signs = [empty("use", href=name, x=percent(frame.across(x)), y=percent(frame.up(y))) for x, y in shown]
    return element("g", *signs, class_=f"mark {look_classes(line.look)}", data_row=line.look)


def _path(points: Points, frame: Frame) -> str:
    """Whole units, each as the distance from the one before, which takes fewer letters."""
    places = [(round(UNITS * frame.across(x)), round(UNITS * frame.up(y))) for x, y in thinned(points)]
    first, before = places[0], places[0]
    path = f"M{first[0]},{first[1]}" + ("h0" if len(places) == 1 else "")
    for place in places[1:]:
        path += f"l{place[0] - before[0]},{place[1] - before[1]}"
        before = place
    return path


def thinned(points: Points, most: int = MOST_POINTS) -> Points:
    """At most so many, with the first and the last."""
    if len(points) <= most:
        return points
    return [points[round(place * (len(points) - 1) / (most - 1))] for place in range(most)]


def percent(share: float) -> str:
    return f"{100 * share:.2f}".rstrip("0").rstrip(".") + "%"
