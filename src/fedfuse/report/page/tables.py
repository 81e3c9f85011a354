"""Tables of a page: they scroll inside their own box, and every cell belongs to a heading."""

from __future__ import annotations

from collections.abc import Sequence

from fedfuse.report.page.charts import swatch
from fedfuse.report.page.data import Classes, Shares, Square
from fedfuse.report.page.html import Content, Html, element
from fedfuse.report.sheet import Sheet

SHADES = 10
"""Steps from white to full."""


def scrolling(name: str, *content: Content) -> Html:
    """A box that a keyboard can reach, because a wide table is moved inside it."""
    return element("div", *content, class_="scroll", tabindex="0", role="region", aria_label=name)


def tabled(title: str, head: Sequence[str], body: Sequence[Html], **attributes: str | None) -> Html:
    """Rows below a title and headings, in a box of their own."""
    headings = element("thead", element("tr", *(element("th", word, scope="col") for word in head)))
    rows = element("tbody", *body)
    return scrolling(title, element("table", element("caption", element("span", title)), headings, rows, **attributes))


def sheet_table(sheet: Sheet, looks: Sequence[int] | None = None, id: str | None = None) -> Html:
    """Names and numbers; with ``looks``, each row has a piece of its line before its name."""
    head = [heading.replace("\n", " ") for heading in (*sheet.keys, *sheet.headings)]
    body = []
    for place, (names, numbers) in enumerate(sheet.rows):
        sign = [swatch(looks[place]), " "] if looks is not None else []
        first = element("th", *sign, names[0] if names else "", scope="row")
        others = [element("td", name, class_="name") for name in names[1:]]
        cells = [_number(number, (place, column) in sheet.best) for column, number in enumerate(numbers)]
        body.append(element("tr", first, *others, *cells, data_row=looks[place] if looks is not None else None))
    return tabled(sheet.title, head, body, id=id)


def _number(text: str, is_best: bool) -> Html:
    verdict = next((word for word in ("better", "worse") if text == word), None)
    return element("td", element("b", text) if is_best else text, class_=verdict)


def shade(share: float) -> str:
    """The class of a cell that is so full."""
    return f"h{round(SHADES * min(max(share, 0.0), 1.0))}"


def classes_table(classes: Classes) -> Html:
    """How often each class was recognised by each row, in shades."""
    body = [
        element(
            "tr",
            element("th", name, scope="row"),
            element("td", f"{count:,}"),
            *(_shaded(share) for share in shares),
        )
        for name, count, shares in zip(classes.names, classes.examples, classes.shares, strict=True)
    ]
    return tabled(classes.title, ("class", "test examples", *classes.rows), body)


def _shaded(share: float | None) -> Html:
    return element("td", "-") if share is None else element("td", f"{100 * share:.1f}", class_=shade(share))


def square_table(square: Square) -> Html:
    """True classes from top to bottom, answers from left to right, in percent of each true class."""
    body = []
    for name, counts in zip(square.names, square.counts, strict=True):
        total = sum(counts)
        cells = [_share_of(count, total) for count in counts]
        body.append(element("tr", element("th", name, scope="row"), *cells))
    title = f"{square.label}: of each true class, what it was taken for, in percent"
    return tabled(title, ("true \\ answer", *square.names), body, class_="square")


def _share_of(count: int, total: int) -> Html:
    if not total or not count:
        return element("td", "")
    return element("td", f"{100 * count / total:.0f}", class_=shade(count / total), title=f"{count:,} of {total:,}")


def shares_table(shares: Shares) -> Html:
    """Who had which examples, in numbers."""
    rows = [("all", shares.sizes), *zip(shares.classes, shares.counts, strict=True)]
    body = [
        element("tr", element("th", name, scope="row"), *(element("td", _count(value)) for value in counts))
        for name, counts in rows
    ]
    return tabled("examples by class and client", ("class", *shares.clients), body)


def _count(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"
