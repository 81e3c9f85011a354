"""The parts of a page, each a heading with what belongs to it; one that has nothing to say is left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

from fedfuse.report.page.charts import Drawn, Frame, chart, look_classes, swatch
from fedfuse.report.page.data import Axis, Differing, Fusion, Group, PageData, Row, RunFacts, Seed, Shares
from fedfuse.report.page.html import Content, Html, element
from fedfuse.report.page.partition import levels, partition_map
from fedfuse.report.page.tables import classes_table, shares_table, sheet_table, square_table, tabled
from fedfuse.report.seeds import in_common

MOST_NUMBERED = 30
"""Clients and classes of a partition that is shown in numbers, too."""
FEW, MANY = 4, 20
"""Classes, for which a partition is drawn lower or higher."""
HOLM = (
    "Differences are taken seed by seed, between runs that had the same examples, and have a 95 % interval (Student's "
    "t). “Better” and “worse” are said where a paired t-test finds a difference at 5 % after Holm's correction for all "
    "rows of the table; with fewer than three seeds nothing is said."
)
WITHIN = "The accuracy that counts is that of the last round measured within the budget, whatever came later."


def sections(data: PageData) -> Iterator[tuple[str, str, list[Content]]]:
    """The name of each, its heading, and its content."""
    yield "results", "Results", list(_results(data))
    yield "curves", "Accuracy against what was spent", [_group(data, place) for place in range(len(data.groups))]
    if data.fusion is not None:
        yield "fusion", "Before and after fusion", list(_fusion(data))
    if data.metrics is not None:
        yield "metrics", "Other metrics", [sheet_table(data.metrics)]
    if data.classes:
        yield "classes", "Classes", list(_classes(data))
    if any(group.shares for group in data.groups):
        yield "partition", "Partition", list(_partitions(data.groups))
    yield "clients", "Clients that did not count", [sheet_table(data.attendance), *_reasons(data)]
    if data.differing or data.recipes:
        yield "configs", "What differs between the configs", list(_configs(data))
    yield "runs", "Runs and commands", [element("div", *map(_run, data.runs), class_="cards")]


def _results(data: PageData) -> Iterator[Content]:
    for note in data.notes:
        yield element("p", note, class_="note")
    yield sheet_table(data.table, range(len(data.rows)), "results-table")
    if data.differences is not None:
        yield sheet_table(data.differences, id="differences-table")
        yield element("p", HOLM, class_="small")


def _group(data: PageData, place: int) -> Html:
    group = data.groups[place]
    rows = [(number, data.rows[number]) for number in group.rows]
    title = [element("h3", group.title)] if len(data.groups) > 1 else []
    panels = [_panel(group, place, axis, rows) for axis in group.axes] or [element("p", "no evaluated round yet")]
    return element("div", *title, _legend(rows), *panels, class_="group", data_group=place)


def _legend(rows: Sequence[tuple[int, Row]]) -> Html:
    entries = [
        element("li", swatch(number), " ", row.label, f" ({row.note})" if row.note else "", data_row=number)
        for number, row in rows
    ]
    return element("ul", *entries, class_="legend")


def _panel(group: Group, place: int, axis: Axis, rows: Sequence[tuple[int, Row]]) -> Html:
    lines = [over_seeds(number, row.seeds, axis) for number, row in rows]
    ends = [seed.spent[axis.name][-1] for _, row in rows for seed in row.seeds if seed.spent.get(axis.name)]
    frame = Frame.around(lines, None if axis.name == "rounds" else 0, axis.factor * max(ends, default=0))
    name = f"{place}-{axis.name}"
    heading = element("h4", f"Over {axis.label.lower()}")
    if frame is None:
        alone = "no round that every seed has measured"
        return element("figure", heading, element("p", alone), class_="panel", id=f"curve-{name}")
    picture = chart(lines, frame, f"Test accuracy over {axis.label.lower()}", _percent(group.target), axis.unit)
    several = any(len(row.seeds) > 1 for _, row in rows)
    shade = "; lines are means over seeds, shades go from the lowest to the highest seed" if several else ""
    unit = f" ({axis.unit})" if axis.unit else ""
    return element(
        "figure",
        heading,
        element("div", picture, class_="plot"),
        element("figcaption", f"Test accuracy in percent over {axis.label.lower()}{unit}{shade}."),
        *_standings(group, axis, rows, name),
        class_="panel",
        id=f"curve-{name}",
        data_axis=axis.name,
        data_left=frame.left / axis.factor,
        data_right=frame.right / axis.factor,
    )


def over_seeds(number: int, seeds: Sequence[Seed], axis: Axis) -> Drawn:
    """Mean, lowest and highest in the rounds that all seeds measured."""
    by_round = [
        {r: (s, v) for r, s, v in zip(one.rounds, one.spent[axis.name], one.values, strict=True)}
        for one in seeds
        if axis.name in one.spent
    ]
    shared = list(in_common(by_round).values())
    spent = [axis.factor * fmean(place for place, _ in seed) for seed in shared]
    values = [[100 * value for _, value in seed] for seed in shared]
    mean = list(zip(spent, map(fmean, values), strict=True))
    if len(by_round) < 2:
        return Drawn(number, mean)
    low, high = (list(zip(spent, map(edge, values), strict=True)) for edge in (min, max))
    return Drawn(number, mean, low, high)


def _standings(group: Group, axis: Axis, rows: Sequence[tuple[int, Row]], name: str) -> list[Html]:
    own = [standing for standing in group.standings if standing.axis == axis.name]
    if not own or len(rows) < 2:
        return []
    head = ["within", *(amount(standing.budget, axis) for standing in own)]
    body = [
        element(
            "tr",
            element("th", swatch(number), " ", row.label, scope="row"),
            *(element("td", element("b", s.cells[k]) if s.best == number else s.cells[k]) for s in own),
            data_row=number,
        )
        for k, (number, row) in enumerate(rows)
    ]
    title = f"test accuracy within a budget of {axis.label.lower()}, %"
    sentences = element("ul", *(element("li", standing.sentence) for standing in own), class_="sentences")
    return [
        element("div", class_="budget", id=f"budget-{name}"),
        tabled(title, head, body, id=f"within-{name}"),
        sentences,
        element("p", WITHIN, class_="small"),
    ]


def amount(value: float, axis: Axis) -> str:
    """So much of what is spent, with its unit."""
    number = f"{axis.factor * value:,.{axis.digits}f}"
    trimmed = number.rstrip("0").rstrip(".") if "." in number else number
    return f"{trimmed} {axis.unit or ('round' if trimmed == '1' else 'rounds')}"


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _fusion(data: PageData) -> Iterator[Content]:
    assert data.fusion is not None
    yield sheet_table(data.fusion)
    for number, row in enumerate(data.rows):
        if row.fusion is not None and (picture := _fusion_chart(number, row.label, row.fusion)):
            yield picture


def _fusion_chart(number: int, label: str, fusion: Fusion) -> Html | None:
    kinds = {"after fusion": fusion.after, "before fusion": fusion.before, "ensemble": fusion.ensemble}
    drawn = {
        kind: Drawn(number, [(x, 100 * y) for x, y in points], kind=kind.split()[0])
        for kind, points in kinds.items()
        if points
    }
    frame = Frame.around(list(drawn.values()))
    if frame is None or len(drawn) < 2:
        return None
    entries = [element("li", _piece(number, kind.split()[0]), " ", kind) for kind in drawn]
    picture = element("div", chart(list(drawn.values()), frame, f"{label}: {', '.join(drawn)}"), class_="plot low")
    caption = element("figcaption", "Test accuracy in percent over rounds, mean over seeds.")
    return element("details", element("summary", label), element("ul", *entries, class_="legend"), picture, caption)


def _piece(number: int, kind: str) -> Html:
    line = element("path", d="M0,7H28", class_=f"stroke {kind}")
    return element("svg", line, class_=f"swatch {look_classes(number)}", width=28, height=14, aria_hidden="true")


def _classes(data: PageData) -> Iterator[Content]:
    yield from map(classes_table, data.classes)
    for square in data.squares:
        yield element("details", element("summary", f"{square.label}: what is taken for what"), square_table(square))


def _partitions(groups: Iterable[Group]) -> Iterator[Content]:
    for group in groups:
        if group.shares is not None:
            yield element("h3", group.title)
            yield element("p", group.shares.words)
            yield from _shares(group.shares)


def _shares(shares: Shares) -> Iterator[Content]:
    if not shares.counts:
        return
    full = max((count for counts in shares.counts for count in counts), default=0)
    marks = [element("li", element("span", class_=f"chip {kind}"), f" {count}") for kind, count in levels(full)]
    height = "few" if len(shares.classes) <= FEW else "many" if len(shares.classes) > MANY else ""
    yield element("div", partition_map(shares), class_=f"plot cells {height}".strip())
    together = f", mean of {shares.neighbours} neighbours" if shares.neighbours > 1 else ""
    yield element("p", f"Columns are clients, rows are classes; examples{together}:", class_="small")
    yield element("ul", *marks, class_="legend")
    if len(shares.clients) <= MOST_NUMBERED and len(shares.classes) <= MOST_NUMBERED:
        yield element("details", element("summary", "in numbers"), shares_table(shares))


def _reasons(data: PageData) -> Iterator[Content]:
    for label, reasons in data.reasons.items():
        if reasons:
            yield element("p", label)
            yield element("ul", *(element("li", reason) for reason in reasons), class_="small")


def _configs(data: PageData) -> Iterator[Content]:
    if data.differing:
        yield _differing(data.differing, "keys beside the method, and of variants of a method")
    if data.recipes:
        recipes = _differing(data.recipes, "keys of the recipes")
        yield element("details", element("summary", "recipes of the methods"), recipes)


def _differing(keys: Sequence[Differing], title: str) -> Html:
    body = []
    for one in keys:
        for place, (value, who) in enumerate(one.values.items()):
            first = [element("th", one.key, scope="rowgroup", rowspan=len(one.values))] if place == 0 else []
            cells = [element("td", word, class_="name") for word in (value, ", ".join(who))]
            body.append(element("tr", *first, *cells))
    return tabled(title, ("key", "value", "rows"), body)


def _run(run: RunFacts) -> Html:
    facts = [
        pair
        for name, said in run.facts.items()
        for pair in (element("dt", name), *(element("dd", one) for one in said))
    ]
    command = element("pre", element("code", run.command), tabindex="0") if run.command else ""
    return element(
        "details",
        element("summary", run.label, " ", element("span", run.state, class_="state")),
        element("dl", *facts),
        command,
        class_="card",
    )
