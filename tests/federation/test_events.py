"""The log: one line of JSON per event, and none of them twice after a resume."""

from __future__ import annotations

import hashlib
import json
from contextlib import closing

import pytest

from fedfuse.core.errors import RunFolderError
from fedfuse.federation.events import EventLog, finished_rounds, last_event, read_events
from tests.helpers import Recorder


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


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


def marks(path, rounds):
    """A log of some rounds, and the marks before the first and after each of them."""
    with closing(EventLog(path)) as log:
        log.emit("run_started", rounds=rounds)
        yield log.mark()
        for number in range(1, rounds + 1):
            log.emit("round_started", round=number)
            log.emit("client_finished", round=number, client=0)
            log.emit("round_finished", round=number)
            yield log.mark()
        log.emit("run_finished", seconds=1.0)


def test_what_follows_a_mark_is_forgotten_and_the_rest_keeps_its_bytes(tmp_path):
    for finished in (3, 2, 1, 0):
        path = tmp_path / f"{finished}.jsonl"
        mark = list(marks(path, 3))[finished]
        before = path.read_bytes()
        with closing(EventLog(path)) as log:
            log.cut(mark)
            assert path.read_bytes() == before[: mark.bytes]
            assert [event["round"] for event in finished_rounds(path, mark)] == list(range(1, finished + 1))
            log.emit("next")
            assert log.mark().bytes == path.stat().st_size
        assert lines(path)[-1]["event"] == "next"
        assert finished_rounds(path, mark) is not None


def test_a_log_that_was_gone_on_with_has_the_marks_of_one_that_was_not(tmp_path):
    straight, halves = tmp_path / "straight.jsonl", tmp_path / "halves.jsonl"
    list(marks(straight, 2))
    whole = straight.read_bytes()
    halves.write_bytes(whole[: whole.index(b'{"event": "round_finished"')])
    with closing(EventLog(straight)) as one, closing(EventLog(halves)) as other:
        one.emit("next", value="x" * 70)
        other.emit("next", value="x" * 70)
        for log in (one, other):
            assert log.mark().sha256 == hashlib.sha256(log.path.read_bytes()).hexdigest()


@pytest.mark.parametrize("damage", ["gone", "cut", "cut at a line", "edited", "a line more"])
def test_another_log_is_noticed(tmp_path, damage):
    path = tmp_path / "events.jsonl"
    mark = list(marks(path, 2))[-1]
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    damaged = {
        "cut": whole[: mark.bytes - 1],
        "cut at a line": whole[: whole.rindex(b"{", 0, mark.bytes)],
        "edited": whole.replace(b'"client": 0', b'"client": 1', 1),
        "a line more": whole[:first] + b'{"event": "x"}\n' + whole[first:],
    }
    path.unlink()
    if damage != "gone":
        path.write_bytes(damaged[damage])
    assert finished_rounds(path, mark) is None


def test_a_half_written_line_after_the_mark_does_not_matter(tmp_path):
    path = tmp_path / "events.jsonl"
    mark = list(marks(path, 2))[1]
    whole = path.read_bytes()
    for cut in range(mark.bytes, len(whole)):
        path.write_bytes(whole[:cut])
        assert [event["round"] for event in finished_rounds(path, mark)] == [1]


def test_what_is_emitted_is_on_disk_at_once(tmp_path):
    path = tmp_path / "events.jsonl"
    with closing(EventLog(path)) as log:
        for number in range(3):
            log.emit("x", number=number)
            assert [entry["number"] for entry in lines(path)] == list(range(number + 1))


@pytest.mark.parametrize("tail", [b"", b'{"event": "x"', b"\x00" * 100, b"\xff\xfe", b"null", b"[" * 99_999])
def test_what_a_killed_process_left_at_the_end_is_passed_over(tmp_path, tail):
    path = tmp_path / "events.jsonl"
    list(marks(path, 1))
    before = list(read_events(path))
    path.write_bytes(path.read_bytes() + tail)
    assert list(read_events(path)) == before


DAMAGED_LINES = [
    b"text",
    b"\xff",
    b"5",
    b"null",
    b"{}",
    b'{"event": 5}',
    b"[" * 99_999,
    b"\x00" * 9,
    b'{"a": ' + b"9" * 5000,
]


@pytest.mark.parametrize("line", DAMAGED_LINES)
def test_damage_in_the_middle_is_said_and_not_taken_for_the_end(tmp_path, line):
    path = tmp_path / "events.jsonl"
    list(marks(path, 2))
    lines = path.read_bytes().splitlines()
    lines[2] = line
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(RunFolderError, match=r"events\.jsonl, line 3 is damaged; bring the log back"):
        list(read_events(path))


def test_the_last_event(tmp_path):
    path = tmp_path / "events.jsonl"
    assert last_event(path) is None
    list(marks(path, 1))
    assert last_event(path)["event"] == "run_finished"


class FailingFile:
    """A file of which a write fails after half of it; the second write, too, if the disk stays as it is."""

    def __init__(self, file, failures=1):
        self.file, self.failures = file, failures

    def write(self, content):
        if not self.failures:
            return self.file.write(content)
        self.failures -= 1
        self.file.write(content[: len(content) // 2])
        raise OSError("the disk fails")

    def __getattr__(self, name):
        return getattr(self.file, name)


def test_half_a_line_that_a_failing_disk_left_damages_no_other(tmp_path):
    path = tmp_path / "events.jsonl"
    with closing(EventLog(path)) as log:
        log.emit("first")
        log._file = FailingFile(log._file)
        with pytest.raises(OSError, match="the disk fails"):
            log.emit("second")
        log.emit("third")
    assert [event["event"] for event in read_events(path)] == ["first", "third"]


def test_half_a_line_is_cut_off_by_whoever_goes_on(tmp_path):
    path = tmp_path / "events.jsonl"
    with closing(EventLog(path)) as log:
        log.emit("first")
    with path.open("ab") as file:
        file.write(b'{"event": "sec')
    with closing(EventLog(path)) as log:
        log.emit("third")
        mark = log.mark()
    assert [event["event"] for event in read_events(path)] == ["first", "third"]
    assert mark.bytes == path.stat().st_size
    assert mark.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
