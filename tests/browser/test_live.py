"""The live page while runs go on: what comes is shown, what the reader has chosen stays, and the end is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from benchmarks.report.runs import Made, write_run

import fedfuse
from fedfuse.experiment.looking import live, watching
from fedfuse.federation.events import EventLog
from fedfuse.federation.folder import RunFolder
from tests.browser.chromium import Chromium
from tests.browser.test_report import HOSTILE, LONG, MEASURES, SCREENS

SAID = "return document.getElementById('now-said').textContent"


class Going:
    """A run that goes on when it is told to."""

    def __init__(self, path: Path, made: Made) -> None:
        self.folder, self.made = RunFolder(path), made
        whole = write_run(path.with_name(f".{path.name}"), Made(**{**made.__dict__, "planned": None}))
        self.lines = whole.events.read_text().splitlines(keepends=True)
        self.whole = whole
        path.mkdir()
        self.folder.config.write_bytes(whole.config.read_bytes())
        self.folder.partition.write_bytes(whole.partition.read_bytes())
        for arrays in whole.path.glob("partition.*"):
            (path / arrays.name).write_bytes(arrays.read_bytes())
        self.folder.events.write_text("")

    def play(self, rounds: int) -> None:
        """So many rounds more."""
        with self.folder.events.open("a") as log:
            while rounds:
                line = self.lines.pop(0)
                rounds -= json.loads(line)["event"] == "round_finished"
                log.write(line)

    def tell(self, event: str, **fields: object) -> None:
        with closing(EventLog(self.folder.events)) as log:
            log.emit(event, **fields)

    def finish(self) -> None:
        with self.folder.events.open("a") as log:
            log.writelines(self.lines)
        for name in ("confusion.json", "summary.json"):
            (self.folder.path / name).write_bytes((self.whole.path / name).read_bytes())


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every folder is some process's, and pages are made whenever they are asked for."""
    monkeypatch.setattr(live, "is_held", lambda _: True)
    monkeypatch.setattr(live.Pace, "is_due", True)
    monkeypatch.setattr(watching, "PATIENCE", 0.0)


@pytest.fixture
def address(tmp_path: Path, browser: Chromium) -> Iterator[str]:
    """Left before nobody answers any more."""
    with fedfuse.watch(tmp_path) as found:
        yield found
        assert browser.complaints() == []
        browser.open("about:blank")


def round_is(number: int) -> str:
    return f"return document.getElementById('now').textContent.includes('round {number} of')"


def test_a_run_from_its_first_moment_to_its_end(browser: Chromium, tmp_path: Path, address: str) -> None:
    browser.look(1280)
    browser.open(address)
    assert "There is no run yet" in browser.run(SAID)
    run = Going(tmp_path / "a", Made("feddf", rounds=12))
    run.play(1)
    browser.wait(round_is(1))
    browser.wait("return document.querySelector('#results-table tbody tr') !== null")
    assert "running" in browser.run(SAID)
    assert "left" in browser.run("return document.querySelector('[data-left]').textContent")
    run.play(3)
    browser.wait(round_is(4))
    browser.wait("return document.querySelector('#runs').textContent.includes('round 4 of 12')")
    assert browser.run("return document.title").startswith("4/12 - ")
    run.tell("update_refused", round=5, client=3, reason=HOSTILE)
    browser.wait("return document.querySelector('.mishaps')?.textContent.includes('client 3 was refused')")
    assert browser.run("return window.harm ?? null") is None
    run.lines = Going(tmp_path / "b", Made("fedavg", rounds=3)).lines
    browser.wait("return document.querySelectorAll('.now > li').length === 2")


def test_the_end_is_told_and_what_is_shown_stays_when_nobody_serves_it(browser: Chromium, tmp_path: Path) -> None:
    browser.look(1280)
    with fedfuse.watch(tmp_path) as address:
        run = Going(tmp_path / "a", Made("fedavg", rounds=3))
        run.play(2)
        browser.open(address)
        browser.wait(round_is(2))
        run.finish()
        browser.wait("return document.getElementById('now-said').textContent === 'The run is finished.'")
        browser.wait("return document.querySelector('#classes') !== null")
    browser.wait("return document.getElementById('now-said').textContent.includes('fedfuse has ended')")
    assert browser.run("return document.querySelectorAll('#results-table tbody tr').length") == 1
    refused = [said for said in browser.complaints() if "ERR_CONNECTION_REFUSED" not in said]
    assert refused == []
    browser.open("about:blank")


def test_what_the_reader_has_chosen_stays(browser: Chromium, tmp_path: Path, address: str) -> None:
    browser.look(390, 500)
    first, second = (Going(tmp_path / name, Made(name, rounds=30)) for name in ("fedavg", "feddf"))
    for run in (first, second):
        run.play(10)
    browser.open(address)
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    browser.run(
        "const slider = document.querySelector('figure.panel:not(.hidden) input'); slider.focus(); "
        "slider.value = 100; slider.dispatchEvent(new Event('input'))"
    )
    browser.run("const box = document.querySelector('#results .scroll'); box.scrollLeft = 40; window.scrollTo(0, 900)")
    label = "return document.querySelector('figure.panel:not(.hidden) label').textContent"
    state = (
        "return [window.scrollY, document.activeElement.id, document.querySelectorAll('details[open]').length,"
        " document.querySelector('#results .scroll').scrollLeft]"
    )
    budget, before = browser.run(label), browser.run(state)
    assert budget == "Budget: 3 rounds"
    for run in (first, second):
        run.play(10)
    browser.wait("return document.querySelector('#runs').textContent.includes('round 20 of 30')")
    assert browser.run(label) == budget
    assert browser.run(state) == before
    browser.run("window.getSelection().selectAllChildren(document.querySelector('h1'))")
    first.play(1)
    browser.wait(round_is(21))
    assert "round 21 of 30" not in browser.run("return document.querySelector('#runs').textContent")
    browser.run("window.getSelection().removeAllRanges()")
    browser.wait("return document.querySelector('#runs').textContent.includes('round 21 of 30')")


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_it_fits_and_asks_nobody_else(
    browser: Chromium, tmp_path: Path, address: str, photograph: Callable[[str], None], width: int, scheme: str
) -> None:
    for name in ("fedavg", "feddf"):
        Going(tmp_path / name, Made(name, rounds=30)).play(12)
    write_run(tmp_path / "c", Made("fedprox", rounds=30))
    run = Going(tmp_path / "d", Made("scaffold", rounds=9, name=LONG))
    run.play(2)
    run.tell("model_diverged", round=3, prototype="mlp", reason="its weights are not finite")
    browser.look(width, scheme=scheme)
    browser.open(address)
    browser.wait("return document.title.includes(' - ')")
    assert browser.run(MEASURES, width) == []
    assert {urlsplit(one).netloc for one in browser.requests()} == {urlsplit(address).netloc}
    photograph(f"live-{width}-{scheme}")


def test_without_javascript_it_is_loaded_again(browser: Chromium, tmp_path: Path, address: str) -> None:
    Going(tmp_path / "a", Made(rounds=9)).play(2)
    browser.look(390, script=False)
    try:
        browser.open(address)
        root = browser.protocol("DOM.getDocument")["root"]["nodeId"]
        for selector in (".now progress", "#results-table tbody tr", "noscript meta[http-equiv=refresh]"):
            assert browser.protocol("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
    finally:
        browser.look(1280)
