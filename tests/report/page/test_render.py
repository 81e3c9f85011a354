"""The page: well-formed, complete without its script, safe whatever names say, and with the numbers of the runs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from benchmarks.report.runs import Made, write_run

import fedfuse
from fedfuse.experiment.looking.comparison import Comparison
from fedfuse.experiment.looking.page import page_data
from fedfuse.experiment.run import Experiment
from fedfuse.report.page import policy, render
from fedfuse.report.page.charts import Drawn, Frame, chart, thinned
from fedfuse.report.page.html import element
from tests.experiment.test_resume import StopAt
from tests.helpers import tiny_config

VOID = {"meta", "link", "br", "input"}
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"&\u202e\x1b[2J"


class Page(HTMLParser):
    """All elements with their attributes, and a complaint about every tag that is not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    @property
    def words(self) -> str:
        return " ".join(text for tag, text in self.texts if tag not in ("script", "style"))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def ids(self) -> list[str]:
        return [str(attributes["id"]) for _, attributes in self.elements if "id" in attributes]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("study")
    for seed in range(3):
        write_run(folder / f"a{seed}", Made("fedavg", seed, rounds=60, level=0.75))
        write_run(folder / f"b{seed}", Made("feddf", seed, rounds=60, level=0.9, bytes_per_round=2000))
    return fedfuse.load_runs(folder)


@pytest.fixture(scope="module")
def html(study: Comparison) -> str:
    return render(page_data(study))


def test_it_is_well_formed_and_every_id_is_there_once(html: str) -> None:
    page = Page(html)
    assert len(set(page.ids())) == len(page.ids())
    sections = ["results", "curves", "fusion", "classes", "partition", "clients", "configs", "runs"]
    assert [attributes["id"] for attributes in page.of("section")] == sections
    assert [link["href"] for link in page.of("a")] == [f"#{name}" for name in sections]


def test_it_loads_nothing_from_anywhere(html: str) -> None:
    page = Page(html)
    for tag, attributes in page.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert not {"src", "srcset", "action", "style", "xlink:href"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)
        if "href" in attributes:
            assert str(attributes["href"]).startswith("#")
    style = next(text for tag, text in page.texts if tag == "style")
    assert "url(" not in style
    assert "@import" not in style
    assert not re.search(r"https?://(?!www\.w3\.org)", html)


def test_the_policy_names_this_script_and_this_style_and_nothing_else(html: str) -> None:
    page = Page(html)
    (said,) = [one["content"] for one in page.of("meta") if one.get("http-equiv") == "Content-Security-Policy"]
    assert said == policy()
    script = "".join(text for tag, text in page.texts if tag == "script").split("}\n", 1)
    code = re.search(r"<script>(.*?)</script>", html, re.DOTALL)
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert script
    assert code
    assert style
    for part in (code[1], style[1]):
        digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in str(said)
    assert "default-src 'none'" in str(said)
    assert "unsafe" not in str(said)


def test_the_table_has_the_numbers_of_the_runs(study: Comparison, html: str) -> None:
    words = Page(html).words
    for row in study.rows:
        assert row.accuracy_last is not None
        interval = row.accuracy_last.interval
        assert f"{100 * interval.mean:.2f} ± {100 * (interval.reach or 0):.2f}" in words
    assert "better" in words
    assert "FedDF" in words


def test_who_is_ahead_within_a_few_budgets_stands_there_without_a_script(study: Comparison, html: str) -> None:
    words = Page(html).words
    said = re.findall(r"Within ([\d.]+) (kB|MB): (\w+) is ahead with ([\d.]+) ± ([\d.]+) %", words)
    assert len(said) >= 3
    for number, unit, name, accuracy, reach in said:
        best = study.within("bytes", float(number) * {"kB": 1e3, "MB": 1e6}[unit])[0]
        assert best["name"] == name
        assert f"{100 * best['accuracy']:.1f}" == accuracy
        assert f"{100 * (best['high'] - best['accuracy']):.1f}" == reach
    assert {name for _, _, name, _, _ in said} == {"FedAvg", "FedDF"}  # little to spend, and much


def test_the_script_has_what_every_run_measured_and_spent(study: Comparison, html: str) -> None:
    text = re.search(r'<script type="application/json" id="fedfuse-data">(.*?)</script>', html, re.DOTALL)
    assert text
    data = json.loads(text[1])
    run = study.lines[1].runs[2]
    seed = data["rows"][1]["seeds"][2]
    assert seed["seed"] == str(run.seed)
    assert seed["rounds"] == list(range(1, 61))
    assert seed["values"] == pytest.approx([r.prototypes["mlp"].accuracy for r in run.result.history], abs=1e-5)
    assert seed["spent"]["bytes"][-1] == run.summary["bytes_up"] + run.summary["bytes_down"]
    assert data["groups"][0]["rows"] == [0, 1]
    assert data["quantiles"][3] == pytest.approx(4.30265, abs=1e-4)


def test_pictures_commands_classes_and_clients_are_there(html: str) -> None:
    page = Page(html)
    labels = [str(one.get("aria-label")) for one in page.of("svg") if one.get("role") == "img"]
    for axis in ("rounds", "bytes sent and received", "seconds"):
        assert f"Test accuracy over {axis}" in labels
    assert any(label.startswith("partition: ") for label in labels)
    for words in ("ant", "bee", "cat", "fedfuse run ", "--out ", "weights are not finite", "before fusion", "ensemble"):
        assert words in page.words
    assert {"within-0-bytes", "budget-0-bytes", "curve-0-seconds", "results-table"} <= set(page.ids())


def test_tables_scroll_inside_boxes_that_a_keyboard_reaches(html: str) -> None:
    page = Page(html)
    boxes = [one for one in page.of("div") if one.get("class") == "scroll"]
    assert len(boxes) == len(page.of("table"))
    assert all(box.get("tabindex") == "0" and box.get("role") == "region" and box.get("aria-label") for box in boxes)
    assert all(head.get("scope") in ("col", "row", "rowgroup") for head in page.of("th"))


def test_every_line_can_be_told_from_others_without_its_colour(html: str) -> None:
    marks = re.findall(r'<g class="mark k(\d) d\d" data-row="(\d+)"><use href="#m(\d)"', html)
    assert {(row, mark) for _, row, mark in marks} == {("0", "0"), ("1", "1")}


def test_the_same_runs_give_the_same_bytes(study: Comparison, html: str, tmp_path: Path) -> None:
    assert study.report(tmp_path / "report.html").read_text() == html


def test_names_are_text_whatever_they_say(tmp_path: Path) -> None:
    classes = (HOSTILE, "javascript:alert(3)", "c" * 5000)
    for seed in range(2):
        run = write_run(tmp_path / f"a{seed}", Made("fedavg", seed, name="one", classes=classes))
        config = run.config.read_text().replace("name: one\n", f"name: {json.dumps(HOSTILE)}\n")
        run.config.write_text(config)
    write_run(tmp_path / "b<b>", Made("feddf", 0, name="two", classes=classes))
    text = render(page_data(fedfuse.load_runs(tmp_path), title=HOSTILE))
    page = Page(text)
    assert len(page.of("script")) == 2
    assert not page.of("img")
    assert not page.of("b") or all(not attributes for attributes in page.of("b"))
    assert "<script>alert(1)</script>" in page.words
    assert "\u202e" not in text
    assert "\x1b" not in text
    json.loads(re.search(r'id="fedfuse-data">(.*?)</script>', text, re.DOTALL)[1])  # type: ignore[index]


@pytest.mark.parametrize("rounds", [1, 2])
def test_one_run_of_hardly_any_rounds_has_a_page(tmp_path: Path, rounds: int) -> None:
    write_run(tmp_path / "run", Made(rounds=rounds))
    page = Page(render(page_data(fedfuse.load_runs(tmp_path))))
    assert "is ahead" not in page.words
    assert "results" in page.ids()


def test_unfinished_damaged_and_measured_by_others(tmp_path: Path) -> None:
    write_run(tmp_path / "a", Made(rounds=3, planned=9))
    write_run(tmp_path / "b", Made("local-only", rounds=9))
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "config.yaml").write_text("x: 1")
    (tmp_path / "c" / "summary.json").write_text("{")
    words = Page(render(page_data(fedfuse.load_runs(tmp_path)))).words
    assert "so far, not finished (round 3 of 9)" in words
    assert "summary.json is damaged" in words
    assert "--resume" in words


@pytest.mark.usefixtures("without_pictures")
def test_a_run_before_its_first_evaluation_is_shown_without_a_curve(tmp_path: Path) -> None:
    config = tiny_config(evaluation={"every": 5}, federation={"rounds": 5})
    with pytest.raises(KeyboardInterrupt):
        Experiment(config).run(tmp_path / "run", listeners=(StopAt("round_started", 3),))
    found = fedfuse.load_runs(tmp_path)
    assert "no evaluated round" in Page(render(page_data(found))).words
    assert "round 2 of 5" in found.describe()
    assert found.rows[0].accuracy_last is None
    with pytest.raises(fedfuse.ConfigError, match="no run has measured 'accuracy'"):
        found.plot(tmp_path / "empty.svg")


def test_many_classes_and_clients_stay_within_bounds(tmp_path: Path) -> None:
    write_run(tmp_path / "run", Made(classes=tuple(f"class {number}" for number in range(150))))
    size = len(render(page_data(fedfuse.load_runs(tmp_path))))
    assert size < 200_000


def test_a_line_of_any_length_has_all_its_ends() -> None:
    points = [(float(number), number / 50) for number in range(5000)]
    frame = Frame.around([Drawn(0, points)])
    assert frame is not None
    picture = chart([Drawn(0, points, points, points)], frame, "label")
    assert "…" not in picture
    paths = re.findall(r'd="([^"]*)" class="(?:stroke|band)', picture)
    assert len(paths) == 2
    assert all(path.count("l") >= 240 for path in paths)
    short = thinned(points)
    assert (short[0], short[-1]) == (points[0], points[-1])
    assert Frame.around([]) is None


def test_elements_escape_what_they_hold() -> None:
    assert element("p", '<b> & "', title='"<') == '<p title="&quot;&lt;">&lt;b&gt; &amp; &quot;</p>'
    assert element("p", element("b", "x"), hidden=True, id=None, class_="a") == '<p hidden class="a"><b>x</b></p>'
