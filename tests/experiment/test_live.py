"""The display of a notebook: it is renewed in place, says how far everything is, and never lags behind the end."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import fedfuse
from fedfuse.experiment.live import MOST_SENTENCES, Live, Shown, listeners
from fedfuse.report.terminal import BARS
from tests.experiment.test_python_values import TINY

pytestmark = pytest.mark.usefixtures("without_pictures")


class Screen:
    """What was shown, with a clock that goes on by ``step`` whenever somebody looks at it."""

    def __init__(self, step: float = 1.0) -> None:
        self.shown: list[Shown] = []
        self.seconds, self.step = 0.0, step

    def live(self, label: str = "mine") -> Live:
        return Live(label, self.shown.append, self.clock)

    def clock(self) -> float:
        self.seconds += self.step
        return self.seconds

    @property
    def last(self) -> Shown:
        return self.shown[-1]


def test_a_run_is_shown_from_its_first_step_to_its_end(tmp_path: Path) -> None:
    screen = Screen()
    fedfuse.run(TINY, federation={"rounds": 3}, out=tmp_path, progress=screen.live())
    texts = [text for _, text in screen.shown]
    for number in (1, 2, 3):
        assert any(f"mine: round {number}/3, " in text for text in texts)
    html, text = screen.last
    assert 'value="3" max="3"' in html
    assert "finished" in text
    assert set(text) & set(BARS)


def test_what_is_left_is_known_after_a_round_and_at_the_end_there_is_nothing() -> None:
    """Rounds of ten minutes: three of four are left, and two after twenty minutes; of three runs as much again."""
    screen = Screen(step=0.0)
    live = screen.live()
    live({"event": "study_run_started", "run": "mine", "rounds": 4, "done": 0})
    for number in (1, 2, 3, 4):
        live({"event": "round_started", "round": number})
        screen.seconds += 600
        live({"event": "round_finished", "round": number, "prototypes": {}, "ensemble_accuracy": 0.5})
    told = [text.rpartition(", ")[2].partition(" left")[0] for _, text in screen.shown if "left" in text]
    assert list(dict.fromkeys(told)) == ["0:30:00", "0:20:00", "0:10:00"]
    assert "left" not in screen.last[1]


def test_what_is_left_of_several_runs_is_told_by_those_that_are_over() -> None:
    screen = Screen(step=0.0)
    live = screen.live()
    live({"event": "study_started", "runs": 3, "finished": 0})
    live({"event": "study_run_started", "run": "a", "rounds": 2, "done": 0})
    screen.seconds += 60
    live({"event": "study_run_finished", "run": "a"})
    assert screen.last[1] == "1/3 runs, 0:02:00 left"


def test_who_shows_too_often_is_kept_waiting_and_the_end_is_not(tmp_path: Path) -> None:
    screen = Screen(step=0.0)
    fedfuse.run(TINY, federation={"rounds": 3}, out=tmp_path, progress=screen.live())
    assert len(screen.shown) == 2
    assert "round 3/3, finished" in screen.last[1]


def test_a_run_that_was_there_is_a_sentence(tmp_path: Path) -> None:
    fedfuse.run(TINY, out=tmp_path)
    screen = Screen(step=0.0)
    fedfuse.run(TINY, out=tmp_path, progress=screen.live())
    assert screen.last[1].startswith("already finished")


@pytest.mark.parametrize("jobs", [1, 2])
def test_several_runs_are_counted(tmp_path: Path, jobs: int) -> None:
    fedfuse.compare(TINY, seeds=[0], out=tmp_path)
    screen = Screen()
    fedfuse.compare(TINY, seeds=[0, 1, 2], out=tmp_path, jobs=jobs, progress=screen.live())
    counts = [text.split("\n")[0] for _, text in screen.shown]
    assert list(dict.fromkeys(count.partition(",")[0] for count in counts)) == ["1/3 runs", "2/3 runs", "3/3 runs"]
    assert counts[-1] == "3/3 runs"
    assert "seed 2" in "".join(text for _, text in screen.shown)
    assert "<progress" in screen.last[0]


def test_names_and_reasons_are_letters_and_not_without_end() -> None:
    screen = Screen()
    live = screen.live("<b>mine")
    live({"event": "tick", "what": "<i>", "done": 1, "total": 2})
    for number in range(1000):
        live({"event": "study_remark", "remark": f"<script>{number}"})
    html, _ = screen.last
    assert "&lt;b&gt;mine: starting, &lt;i&gt; 1/2" in html
    assert "<b>" not in html
    assert "<script" not in html
    assert html.count("&lt;script") == MOST_SENTENCES


def test_a_notebook_gets_one_output_that_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs: list[list[Any]] = []

    def display(content: Any, raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        outputs.append([content])
        return SimpleNamespace(update=lambda content, raw: outputs[-1].append(content if raw else None))

    shell = SimpleNamespace(kernel=object())
    ipython, module = ModuleType("IPython"), ModuleType("IPython.display")
    monkeypatch.setattr(ipython, "get_ipython", lambda: shell, raising=False)
    monkeypatch.setattr(module, "display", display, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    (listener,) = listeners("auto", "mine")
    assert isinstance(listener, Live)
    fedfuse.run(TINY, out=tmp_path)
    (renewed,) = outputs
    assert len(renewed) > 1
    assert all(set(content) == {"text/html", "text/plain"} for content in renewed)
