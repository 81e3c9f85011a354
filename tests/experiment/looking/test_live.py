"""Runs that are watched: what each does, runs that come, go on, fall back and are replaced, and when a page is new."""

from __future__ import annotations

import json
import shutil
import time
from contextlib import closing
from pathlib import Path

import pytest
from benchmarks.report.runs import Made, write_run

from fedfuse.experiment.looking import live
from fedfuse.experiment.looking.live import LiveRuns, Pace
from fedfuse.federation.events import EventLog
from fedfuse.federation.folder import RunFolder
from tests.report.page.test_render import HOSTILE, Page

GOING = Made("fedavg", rounds=4, planned=10)


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pace, "is_due", True)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a process worked on every folder."""
    monkeypatch.setattr(live, "is_held", lambda _: True)


def words(runs: LiveRuns) -> str:
    return Page(runs.page().html).words


def add(folder: RunFolder, event: str, **fields: object) -> None:
    with closing(EventLog(folder.events)) as log:
        log.emit(event, **fields)


def next_round(folder: RunFolder, number: int) -> None:
    """What the last round was, once more."""
    last = [json.loads(line) for line in folder.events.read_text().splitlines() if '"round_finished"' in line][-1]
    del last["time"], last["event"]
    add(folder, "round_started", round=number, clients=last["clients"])
    add(folder, "round_finished", **{**last, "round": number})


@pytest.mark.usefixtures("held")
def test_a_folder_without_runs_says_so_and_a_run_that_comes_shows_up(tmp_path: Path) -> None:
    runs = LiveRuns([tmp_path / "later"])
    first = runs.page()
    assert "There is no run yet" in words(runs)
    write_run(tmp_path / "later" / "a", GOING)
    assert json.loads(runs.news())["page"] != first.tag
    assert "study fedavg seed 0" in words(runs)
    write_run(tmp_path / "later" / "b", Made("feddf", rounds=3))
    assert [run.state for run in runs.now()] == ["running", "finished"]
    assert "FedDF" in words(runs)


@pytest.mark.usefixtures("held")
def test_what_a_run_does(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", GOING)
    runs = LiveRuns([tmp_path])
    (now,) = runs.now()
    assert (now.round, now.rounds, now.left, now.step) == (4, 10, 6, "between two rounds")
    assert 0.5 <= now.each <= 0.6
    add(folder, "round_started", round=5, clients=[1, 2, 3])
    assert runs.now()[0].step == "round 5: 0 of 3 clients have answered"
    began = runs.now()[0].since
    for client in (1, 2, 3):
        assert runs.now()[0].step == f"round 5: {client - 1} of 3 clients have answered"
        add(folder, "client_finished", round=5, client=client)
    (now,) = runs.now()
    assert now.step == "round 5: all clients have answered, the server works"
    assert now.since == began
    assert abs(time.time() - began) < 60
    assert now.last_time > began


@pytest.mark.usefixtures("held")
def test_a_page_is_new_when_a_round_is_over_and_not_when_a_client_has_answered(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", GOING)
    runs = LiveRuns([tmp_path])
    first = runs.page()
    add(folder, "client_finished", round=5, client=1)
    assert runs.page() is first
    next_round(folder, 5)
    second = runs.page()
    assert second.tag != first.tag
    assert json.loads(runs.news())["page"] == second.tag
    assert "round 5 of 10" in words(runs)


@pytest.mark.usefixtures("held")
def test_only_runs_that_have_changed_are_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path / "a", GOING)
    folder = write_run(tmp_path / "b", Made("fedprox", rounds=4, planned=10))
    read, whole = [], live.read_stored
    monkeypatch.setattr(live, "read_stored", lambda folder: read.append(folder.path.name) or whole(folder))
    runs = LiveRuns([tmp_path])
    runs.page()
    next_round(folder, 5)
    runs.page()
    assert read == ["a", "b", "b"]


@pytest.mark.usefixtures("held")
def test_a_run_that_fell_back_and_one_that_was_replaced_are_read_anew(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", GOING)
    runs = LiveRuns([tmp_path])
    assert "round 4 of 10" in words(runs)
    lines = folder.events.read_bytes().splitlines(keepends=True)
    folder.events.write_bytes(b"".join(lines[:5]))  # two rounds
    assert runs.now()[0].round == 2
    assert "round 2 of 10" in words(runs)
    shutil.rmtree(folder.path)
    assert "There is no run yet" in words(runs)
    write_run(folder.path, Made("fedprox", seed=3, rounds=1, planned=7))
    assert "study fedprox seed 3" in words(runs)
    assert runs.now()[0].rounds == 7


def test_a_run_that_nobody_works_on_is_not_called_running(tmp_path: Path) -> None:
    write_run(tmp_path / "a", GOING)
    (now,) = LiveRuns([tmp_path]).now()
    assert (now.state, now.left, now.step) == ("stopped", 0, "")
    assert "Nothing goes on" in words(LiveRuns([tmp_path]))


@pytest.mark.usefixtures("held")
def test_mishaps_are_told_as_they_come_the_latest_of_them(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", GOING)
    runs = LiveRuns([tmp_path])
    assert runs.now()[0].mishaps == []
    for client in range(30):
        add(folder, "update_refused", round=5, client=client, reason=HOSTILE)
    (now,) = runs.now()
    assert len(now.mishaps) == live.SAID
    assert now.mishaps[-1].startswith("client 29 was refused: ")
    html = json.loads(runs.news())["now"]
    assert "<script" not in html
    assert "<img" not in html
    assert "\u202e" not in html
    assert "\x1b" not in html
    assert "client 29 was refused" in Page(html).words


@pytest.mark.usefixtures("held")
def test_it_may_end_earlier_only_if_the_experiment_says_so(tmp_path: Path) -> None:
    target = {"evaluation": {"target_accuracy": 0.7, "stop_at_target": True}}
    write_run(tmp_path / "a", Made(rounds=2, planned=9, sections=target))
    write_run(tmp_path / "b", Made(rounds=2, planned=9))
    assert [run.at_most for run in LiveRuns([tmp_path]).now()] == [True, False]


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "round_finished", "round": "many", "clients": [], "bytes_up": 1, "bytes_down": 1, "seconds": 1}',
        '{"event": "round_finished", "round": 7, "clients": [], "bytes_up": 1, "bytes_down": 1, "seconds": 1, "prototypes": 3}',  # noqa: E501
        '{"event": "round_started", "time": "noon", "round": [], "clients": 3}',
        '{"event": "update_refused"}',
        '{"event": "model_diverged", "reason": {"a": 1}}',
        "no event at all",
        '{"event": "run_started", "rounds": -4, "time": []}',
    ],
)  # fmt: skip
@pytest.mark.usefixtures("held")
def test_whatever_a_log_says_there_is_a_page(tmp_path: Path, line: str) -> None:
    folder = write_run(tmp_path / "a", GOING)
    write_run(tmp_path / "b", Made("feddf", rounds=3))
    with folder.events.open("a") as log:
        log.write(f"{line}\n")
    runs = LiveRuns([tmp_path])
    json.loads(runs.news())
    assert "FedDF" in words(runs)


def test_what_cannot_be_read_at_all_is_a_sentence(tmp_path: Path) -> None:
    write_run(tmp_path / "a", Made(rounds=2))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "config.yaml").write_text("[")
    (tmp_path / "b" / "summary.json").write_text("{}")
    assert "b/config.yaml" in words(LiveRuns([tmp_path]))


def test_a_page_takes_no_more_than_its_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    now = 100.0
    pace = Pace(0.5, lambda: now)
    assert pace.is_due
    began = pace.begin()
    now += 2.0  # it took two seconds
    pace.took(began)
    now += 2.0 / live.SHARE - 0.1
    assert not pace.is_due
    now += 0.2
    assert pace.is_due
