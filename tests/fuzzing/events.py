"""The log of a run, finished or not."""

from __future__ import annotations

import tempfile
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from random import Random

from fedfuse.federation.events import EventLog, has_finished_rounds, read_events
from fedfuse.federation.logged_rounds import LOG, rounds_of_finished
from tests.federation.test_checkpoint import record_of
from tests.fuzzing.mutation import bytes_of, text_of
from tests.fuzzing.place import written


def honest() -> list[bytes]:
    """With the mark that vouches for all lines, and as earlier versions wrote it."""
    return [_log(marked) for marked in (True, False)]


def _log(marked: bool) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        with closing(EventLog(path)) as log:
            log.emit("run_started", rounds=2, origin={"torch": "2", "fedfuse": "0"})
            for number in (1, 2):
                log.emit("round_started", round=number)
                log.emit("round_finished", **record_of(number).to_json())
            log.emit("run_finished", seconds=1.0, models=1, **({LOG: asdict(log.mark())} if marked else {}))
        return path.read_bytes()


def mutate(rng: Random, case: bytes) -> bytes:
    if rng.random() < 0.5:
        return bytes_of(rng, case)
    return text_of(rng, case.decode(), ("{}", "5", "null", "[" * 5000)).encode("utf-8", "surrogatepass")


def read(case: bytes) -> None:
    path = written("events.jsonl", case)
    has_finished_rounds(path)
    rounds_of_finished(path)
    assert all(isinstance(event["event"], str) for event in read_events(path))
