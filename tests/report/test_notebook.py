"""Pictures in a cell of a notebook: complete by themselves, and well-formed whatever names they show."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from fedfuse.report.notebook import MOST_LINES, curves, partition_figure
from fedfuse.report.page.charts import Drawn
from fedfuse.report.page.data import Shares

RISING = [(1.0, 20.0), (2.0, 40.0), (3.0, 60.0)]


def parsed(html: str) -> ElementTree.Element:
    return ElementTree.fromstring(html)


def test_a_picture_brings_every_sign_and_every_style_that_it_uses() -> None:
    html = curves(["a", "b"], [Drawn(0, RISING), Drawn(1, RISING[:2], RISING[:2], RISING[:2])], target=0.5)
    known = {f"#{one.attrib['id']}" for one in parsed(html).iter("symbol")}
    used = {one.attrib["href"] for one in parsed(html).iter("use")}
    assert used
    assert used <= known
    style = parsed(html).findtext("style") or ""
    classes = {name for one in parsed(html).iter() for name in one.attrib.get("class", "").split()}
    unstyled = {name for name in classes if not re.search(rf"\.{name}\b", style)}
    # lines are told apart by the classes; those without a rule are solid, hidden texts or boxes
    assert unstyled <= {"lines", "d0", "legend", "target"}
    assert "target 50 %" in "".join(parsed(html).itertext())
    assert all(rule.startswith(".fedfuse-figure ") for rule in re.findall(r"[^{},]+(?=[,{])", style) if "." in rule)


def test_lines_go_where_the_values_are() -> None:
    html = curves(["a"], [Drawn(0, RISING)])
    (path,) = (one for one in parsed(html).iter("path") if "stroke" in one.attrib.get("class", "").split())
    steps = re.findall(r"l(-?\d+),(-?\d+)", path.attrib["d"])
    assert [int(x) for x, _ in steps] == [500, 500]
    assert all(int(y) < 0 for _, y in steps), "higher is further up, and further up is less"
    assert steps[0][1] == steps[1][1]


def test_hostile_names_are_letters_and_many_lines_are_few() -> None:
    names = [f"<script>{place}</script>&" for place in range(40)]
    html = curves(names, [Drawn(place, RISING) for place in range(40)])
    assert "<script" not in html
    assert len(re.findall(r'class="stroke ', html)) == MOST_LINES
    assert f"the first {MOST_LINES} of 40 lines" in html
    assert len(html) < 40_000


def test_nothing_measured_is_no_picture() -> None:
    assert curves([], []) == ""
    assert curves(["a"], [Drawn(0, [])]) == ""
    assert "<circle" not in curves(["a"], [Drawn(0, [(1.0, 50.0)])])


def test_a_partition_has_a_cell_for_each_share_and_words_alone_of_too_many() -> None:
    shares = Shares("2 clients", ["<i>", "b"], ["cat", "dog"], [[3, 0], [1, 4]], [4, 4])
    html = partition_figure(shares)
    cells = "".join(one.attrib["d"] for one in parsed(html).iter("path") if one.attrib.get("class", "").startswith("f"))
    assert cells.count("M") == 3
    assert "<i>" not in html
    assert partition_figure(Shares("very many", [], [], [], [])) == "<div>very many</div>"
