"""The log: one line of JSON per event, and none of them twice after a resume."""

from __future__ import annotations

import json
from contextlib import closing

from fedfuse.federation.events import EventLog, forget_after
from tests.helpers import Recorder


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def written(path, rounds):
    with closing(EventLog(path)) as log:
        log.emit("run_started", rounds=rounds)
        for number in range(1, rounds + 1):
            log.emit("round_started", round=number)
            log.emit("client_finished", round=number, client=0)
            log.emit("round_finished", round=number)
        log.emit("run_finished", seconds=1.0)


def test_events_are_written_and_told_and_ticks_are_only_told(tmp_path):
    heard = Recorder()
    with closing(EventLog(tmp_path / "events.jsonl", (heard, heard))) as log:
        log.emit("x", value=1)
        log.tick("clients", 1, 4)
    (entry,) = lines(tmp_path / "events.jsonl")
    assert (entry["event"], entry["value"]) == ("x", 1)
    assert isinstance(entry["time"], float)
    assert [e["event"] for e in heard.entries] == ["x", "x", "tick", "tick"]
    assert heard.of("tick")[0] == {"event": "tick", "what": "clients", "done": 1, "total": 4}


def test_without_a_file_events_are_told():
    heard = Recorder()
    EventLog(listeners=(heard,)).emit("x")
    assert len(heard.of("x")) == 1


def test_later_rounds_and_the_end_are_forgotten(tmp_path):
    path = tmp_path / "events.jsonl"
    for finished in (3, 2, 1, 0):
        path.unlink(missing_ok=True)
        written(path, 3)
        forget_after(path, finished)
        assert [e["event"] for e in lines(path)] == ["run_started"] + [
            "round_started", "client_finished", "round_finished",
        ] * finished  # fmt: skip
        assert max((e.get("round", 0) for e in lines(path)), default=0) == finished


def test_a_half_written_last_line_is_forgotten_wherever_it_was_cut(tmp_path):
    path = tmp_path / "events.jsonl"
    written(path, 2)
    whole = path.read_bytes()
    start = whole.rindex(b'{"event": "round_finished"')
    for cut in range(start, whole.rindex(b'{"event": "run_finished"') - 1):
        path.write_bytes(whole[:cut])
        forget_after(path, 2)
        assert [e["event"] for e in lines(path)][-1] == "client_finished"
        with closing(EventLog(path)) as log:
            log.emit("next")
        assert lines(path)[-1]["event"] == "next"


def test_earlier_rounds_keep_their_bytes(tmp_path):
    path = tmp_path / "events.jsonl"
    written(path, 2)
    before = path.read_text().splitlines()[:4]
    forget_after(path, 1)
    assert path.read_text().splitlines() == before


def test_no_log_is_no_problem(tmp_path):
    forget_after(tmp_path / "events.jsonl", 3)
    assert not (tmp_path / "events.jsonl").exists()


def test_what_is_emitted_is_on_disk_at_once(tmp_path):
    path = tmp_path / "events.jsonl"
    with closing(EventLog(path)) as log:
        for number in range(3):
            log.emit("x", number=number)
            assert [entry["number"] for entry in lines(path)] == list(range(number + 1))
