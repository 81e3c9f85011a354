"""A run's counts: those of its summary, during the run, after a fall back, and from a log that is damaged."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path

import pytest

from fedfuse.experiment.run import Experiment
from fedfuse.federation.events import EventLog
from fedfuse.federation.folder import RunFolder
from fedfuse.report.monitor import Monitor
from fedfuse.report.prometheus import exposition
from tests.helpers import tiny_config

SAMPLE = re.compile(r'(fedfuse_[a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+)\} (\S+)')


def metrics(monitor: Monitor, run: str = "mine") -> dict[str, float]:
    """By name and labels; every line is read by the format's own rules."""
    found, declared = {}, {}
    for line in exposition(monitor.look(), run, monitor.is_complete).splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in declared, "a metric is declared once"
            declared[name] = kind
        elif not line.startswith("# HELP "):
            name, labels, value = SAMPLE.fullmatch(line).groups()
            assert declared[name] == ("counter" if name.endswith("_total") else "gauge")
            rest = labels.partition(",")[2]
            found[f"{name}{{{rest}}}" if rest else name] = float(value)
    return found


def a_round(number: int, **changes: object) -> dict[str, object]:
    whole = {
        "round": number, "clients": [0, 1, 2, 3], "refused": [], "screened": [], "bytes_up": 10, "bytes_down": 20,
        "training_loss": 0.5, "ensemble_accuracy": None, "prototypes": {"mlp": {"accuracy": 0.25, "loss": None}},
        "seconds": 1.5, "client_accuracy": {},
    }  # fmt: skip
    return {**whole, **changes}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


def test_a_finished_run_has_the_numbers_of_its_summary(tmp_path: Path) -> None:
    result = Experiment(tiny_config("feddf")).run(tmp_path / "run")
    found, summary = metrics(Monitor(result.folder)), result.summary
    assert found["fedfuse_run_complete"] == 1
    assert found["fedfuse_round"] == found["fedfuse_rounds_planned"] == summary["rounds"]
    for name, own in summary["prototypes"].items():
        assert found[f'fedfuse_accuracy{{model="{name}"}}'] == own["accuracy_last"]
        assert found[f'fedfuse_loss{{model="{name}"}}'] == own["loss_last"]
    assert found['fedfuse_bytes_total{direction="up"}'] == summary["bytes_up"]
    assert found['fedfuse_bytes_total{direction="down"}'] == summary["bytes_down"]
    assert found["fedfuse_seconds_total"] == pytest.approx(summary["seconds"])
    tasks = sum(len(record.clients) for record in result.history)
    assert found['fedfuse_clients_total{outcome="counted"}'] == tasks
    assert found["fedfuse_unreadable_events_total"] == 0


def test_who_did_not_count_is_told_by_the_reason(folder: RunFolder) -> None:
    with closing(EventLog(folder.events)) as log:
        log.emit("round_finished", **a_round(1, refused=[0], absent=[1]))
        log.emit("model_diverged", round=2, prototype="mlp", reason="")
        log.emit("round_finished", **a_round(2, refused=[0, 1], screened=[3], late=[2]))
        clock = {"total": 1.0, "absent": 7, "late": [2], "left": [3]}
        log.emit("round_finished", **a_round(3, clock=clock, late=[2, 3]))
        log.emit("round_finished", **a_round(4, clock=clock))  # of an older version
    found = metrics(Monitor(folder))
    assert {
        key.partition('"')[2].rstrip('"}'): value for key, value in found.items() if "fedfuse_clients_total" in key
    } == {"counted": 6, "refused": 3, "absent": 1, "late": 5, "screened": 1}
    assert found["fedfuse_models_diverged_total"] == 1


def test_what_was_not_measured_is_not_there(folder: RunFolder) -> None:
    with closing(EventLog(folder.events)) as log:
        log.emit("round_finished", **a_round(1))
    found = metrics(Monitor(folder))
    assert 'fedfuse_loss{model="mlp"}' not in found
    assert "fedfuse_ensemble_accuracy" not in found
    assert found['fedfuse_accuracy{model="mlp"}'] == 0.25


def test_a_run_is_followed_and_nothing_is_read_twice(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    read, loads = [], json.loads
    monkeypatch.setattr("fedfuse.report.monitor.json.loads", lambda line: read.append(line) or loads(line))
    monitor = Monitor(folder)
    assert metrics(monitor)["fedfuse_round"] == 0
    with closing(EventLog(folder.events)) as log:
        for number in range(1, 6):
            log.emit("round_finished", **a_round(number))
            found = metrics(monitor)
            assert found["fedfuse_round"] == number
            assert found['fedfuse_bytes_total{direction="up"}'] == 10 * number
    assert len(read) == 2 * 5  # as the round's record, and as the latest event


def test_a_half_written_line_waits_for_its_end(folder: RunFolder) -> None:
    line = json.dumps({"event": "round_finished", "time": 1.0, **a_round(1)}).encode() + b"\n"
    monitor = Monitor(folder)
    for place in (1, 5, 40, len(line) - 1):
        folder.events.write_bytes(line[:place])
        assert metrics(monitor)["fedfuse_round"] == 0
    folder.events.write_bytes(line)
    found = metrics(monitor)
    assert (found["fedfuse_round"], found["fedfuse_unreadable_events_total"]) == (1, 0)


def test_a_run_that_fell_back_is_counted_anew(folder: RunFolder) -> None:
    """Also where the log has come to be longer than it was before anybody looked again."""
    monitor = Monitor(folder)
    with closing(EventLog(folder.events)) as log:
        log.emit("round_finished", **a_round(1))
        mark = log.mark()
        log.emit("round_finished", **a_round(2, bytes_up=1000))
        assert metrics(monitor)['fedfuse_bytes_total{direction="up"}'] == 1010
        log.cut(mark)
        log.emit("run_resumed", rounds=9)
        for number in (2, 3, 4):
            log.emit("round_finished", **a_round(number))
    found = metrics(monitor)
    assert (found["fedfuse_round"], found['fedfuse_bytes_total{direction="up"}']) == (4, 40)
    assert found["fedfuse_resumes_total"] == 1


def test_a_replaced_or_removed_log_is_noticed(folder: RunFolder) -> None:
    monitor = Monitor(folder)
    with closing(EventLog(folder.events)) as log:
        log.emit("round_finished", **a_round(1))
    assert metrics(monitor)["fedfuse_round"] == 1
    folder.events.unlink()
    assert metrics(monitor)["fedfuse_round"] == 0


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe\n", b"\n", b"{}\n", b'{"event": "round_finished"}\n', b'{"event": "round_finished", "clients": 3}\n',
        b'{"time": 1, "event": "round_finished"}\n', b'{"event": "run_started", \n', b'[[[["event"]]]]\n',
        b'{"event": "round_finished", "x": ' + b"[" * 100_000 + b"\n",
        b'{"event": "round_finished", "clients": [], "bytes_up": "x", "bytes_down": 0, "seconds": 0}\n',
    ],
)  # fmt: skip
def test_a_damaged_line_is_counted_and_stops_nobody(folder: RunFolder, line: bytes) -> None:
    with closing(EventLog(folder.events)) as log:
        log.emit("round_finished", **a_round(1))
    with folder.events.open("ab") as log:
        log.write(line)
    with closing(EventLog(folder.events)) as log:
        log.emit("round_finished", **a_round(2))
    found = metrics(Monitor(folder))
    assert (found["fedfuse_round"], found["fedfuse_unreadable_events_total"]) == (2, 1)
    assert found['fedfuse_bytes_total{direction="down"}'] == 40


def test_names_of_every_kind_can_be_written(folder: RunFolder) -> None:
    with closing(EventLog(folder.events)) as log:
        log.emit("round_finished", **a_round(1, prototypes={'a"b\\c\nd': {"accuracy": 0.5}}))
    found = metrics(Monitor(folder), run='my "run"\n')
    assert found['fedfuse_accuracy{model="a\\"b\\\\c\\nd"}'] == 0.5


def test_the_page_names_every_metric_and_no_other(folder: RunFolder) -> None:
    prototypes = {"mlp": {"accuracy": 0.5, "loss": 1.0}}
    with closing(EventLog(folder.events)) as log:
        log.emit("run_started", rounds=9)
        measured = {"prototypes": prototypes, "ensemble_accuracy": 0.5, "privacy": {"epsilon": 1.0}}
        log.emit("round_finished", **a_round(1, **measured))
    emitted = {name.partition("{")[0] for name in metrics(Monitor(folder))}
    page = (Path(__file__).parents[2] / "docs" / "operation.md").read_text()
    assert set(re.findall(r"\bfedfuse_[a-z_]+", page)) == emitted


class TestTrouble:
    def test_there_is_no_run(self, folder: RunFolder) -> None:
        assert Monitor(folder).trouble(None) == "there is no run yet"

    def test_nothing_happens(self, folder: RunFolder) -> None:
        folder.events.write_text('{"event": "client_finished", "time": 1000.0}\n')
        monitor = Monitor(folder)
        assert monitor.trouble(None) is None
        assert monitor.trouble(3600).startswith("nothing happened for ")
        folder.summary.write_text("{}")
        assert monitor.trouble(3600) is None

    def test_any_event_is_a_sign_of_life(self, folder: RunFolder) -> None:
        with closing(EventLog(folder.events)) as log:
            log.emit("client_finished", round=1, client=0)
            assert Monitor(folder).trouble(3600) is None
