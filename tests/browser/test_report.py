"""The page of ``fedfuse report`` as people meet it: phone and desktop, light and dark, by keyboard, on paper."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from benchmarks.report.runs import Made, write_run

import fedfuse
from fedfuse.experiment.looking.comparison import Comparison
from tests.browser.chromium import Chromium

MEASURES = (Path(__file__).parent / "measures.js").read_text(encoding="utf-8")
HOSTILE = "<img src=x onerror='window.harm=1'></script><script>window.harm=2</script>"
LONG = "an-experiment-with-a-name-that-is-far-too-long-for-a-column-of-a-table"
SCREENS = [(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """FedAvg is ahead early and cheap, FedDF in the end; names are long or mean harm."""
    folder = tmp_path_factory.mktemp("study")
    classes = ("ant", HOSTILE, "a class with a name that is so long that it does not fit into any column of a table")
    for seed in range(3):
        write_run(folder / f"a{seed}", Made("fedavg", seed, rounds=40, level=0.7, bytes_per_round=100, classes=classes))
        write_run(folder / f"b{seed}", Made("feddf", seed, rounds=40, level=0.9, bytes_per_round=900, classes=classes))
        write_run(folder / f"c{seed}", Made("fedprox", seed, rounds=30, level=0.6, name=LONG, classes=classes))
    return fedfuse.load_runs(folder)


@pytest.fixture(scope="module")
def page(study: Comparison, tmp_path_factory: pytest.TempPathFactory) -> str:
    return study.report(tmp_path_factory.mktemp("page") / "report.html").as_uri()


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_it_fits_is_legible_and_loads_nothing(
    browser: Chromium, page: str, photograph: Callable[[str], None], width: int, scheme: str
) -> None:
    browser.look(width, scheme=scheme)
    browser.open(page)
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert browser.run(MEASURES, width) == []
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == (
        "rgb(20, 23, 26)" if scheme == "dark" else "rgb(255, 255, 255)"
    )
    assert {urlsplit(address).scheme for address in browser.requests()} <= {"file", "data"}
    assert browser.requests() == []
    photograph(f"report-{width}-{scheme}")


def test_names_stay_text(browser: Chromium, page: str) -> None:
    browser.look(1280)
    browser.open(page)
    assert browser.run("return window.harm ?? null") is None
    assert browser.run("return document.querySelectorAll('img').length") == 0
    assert HOSTILE in browser.run("return document.querySelector('main').textContent")


def test_the_budget_is_chosen_by_keyboard_and_the_winner_is_that_of_python(
    browser: Chromium, page: str, study: Comparison
) -> None:
    browser.look(1280)
    browser.open(page)
    browser.run("document.querySelector('[role=tab]').focus()")
    browser.press("right")  # bytes
    figure = browser.run("return document.querySelector('figure.panel:not(.hidden)').id")
    assert figure.endswith("bytes")
    left, right = (
        float(browser.run(f"return document.getElementById('{figure}').dataset.{end}")) for end in ("left", "right")
    )
    browser.run("document.querySelector('figure.panel:not(.hidden) input').focus()")
    winners = set()
    for keys in (["home", *["right"] * 20], ["right"] * 60, ["end"], ["left"] * 30):
        browser.press(*keys)
        step = float(browser.run("return document.activeElement.value"))
        said = browser.run("return document.querySelector('figure.panel:not(.hidden) output').textContent")
        budget = left + (right - left) * step / 400
        group = [row for row in study.within("bytes", budget) if LONG not in row["name"]]
        best = group[0]
        assert best["name"] in said.partition(" is ahead")[0]
        assert f"{100 * best['accuracy']:.1f}" in said
        bold = browser.run(
            "return document.querySelector('figure.panel:not(.hidden) td.chosen b').closest('tr').cells[0].textContent"
        )
        assert best["name"] in bold
        winners.add(best["name"])
    assert len(winners) == 2, "the budget decides who wins"


def test_a_click_into_the_picture_chooses_a_budget(browser: Chromium, page: str) -> None:
    browser.look(1280)
    browser.open(page)
    browser.run(
        "const svg = document.querySelector('.panel:not(.hidden) .plot > svg'), box = svg.getBoundingClientRect(),"
        " at = {clientX: box.left + box.width / 2, clientY: box.top + 5, bubbles: true};"
        "svg.dispatchEvent(new MouseEvent('click', at))"
    )
    assert browser.run("return document.querySelector('figure.panel:not(.hidden) input').value") == "200"


def test_everything_can_be_reached_by_tab_and_the_focus_is_seen(browser: Chromium, page: str) -> None:
    browser.look(1280)
    browser.open(page)
    reached = set()
    for _ in range(60):
        browser.press("tab")
        kind, outline = browser.run(
            "const one = document.activeElement; return [one.tagName + (one.className ? '.' + one.className : ''), "
            "getComputedStyle(one).outlineStyle]"
        )
        reached.add(kind)
        assert kind == "BODY" or outline != "none"
    assert {"A", "BUTTON", "INPUT", "DIV.scroll", "SUMMARY"} <= reached


def test_without_javascript_tables_and_curves_are_there(
    browser: Chromium, page: str, photograph: Callable[[str], None]
) -> None:
    browser.look(390, script=False)
    try:
        browser.open(page)
        photograph("report-390-unscripted")
        answer = browser.protocol("DOM.getDocument", depth=-1)
        box = browser.protocol(
            "DOM.querySelectorAll", nodeId=answer["root"]["nodeId"], selector="figure .plot path.stroke"
        )
        assert len(box["nodeIds"]) == 9, "three rows over three axes"
        for selector in ("#results-table tbody tr", "figure.panel table tbody tr", "#partition svg"):
            found = browser.protocol("DOM.querySelectorAll", nodeId=answer["root"]["nodeId"], selector=selector)
            assert found["nodeIds"]
            model = browser.protocol("DOM.getBoxModel", nodeId=found["nodeIds"][-1])["model"]
            assert model["height"] > 0
    finally:
        browser.look(1280)


def test_on_paper_there_are_all_sections(browser: Chromium, page: str) -> None:
    browser.look(1280)
    browser.open(page)
    headings = browser.run("return [...document.querySelectorAll('h2')].map((one) => one.textContent)")
    document = browser.pdf()
    assert document.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", document)) > 2
    for heading in headings:
        assert heading.encode() in document or heading.encode("utf-16-be").hex().upper().encode() in document
    assert browser.run("return document.querySelectorAll('details[open]').length") == 0, "as it was before"
