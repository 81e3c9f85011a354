"""Taking turns: each in a process of its own, kept when finished, with a reason when not."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fedfuse.experiment.bench.turns import Kept, Plan, Turn, Unheard, take_turns
from fedfuse.experiment.bench.workloads.base import Contender, Row, Workload

SAY = "import json, sys; print('chatter'); print(json.dumps({'numbers': {'cpu': %s}, 'chosen': 'this'}))"


def program(name: str, code: str, **settings: object) -> Contender:
    return Contender(name, command=(sys.executable, "-c", code), **settings)  # type: ignore[arg-type]


def plan(folder: Path, *contenders: Contender, turns: int = 1, seconds: int = 60) -> Plan:
    workload = Workload("T", "a test", "nothing", contenders, (Row("one", "one", "cpu"),), seconds)
    return Plan([workload], "full", turns, folder, ("key=value",))


def taken(wanted: Plan, kept: Kept | None = None) -> list[Turn]:
    return take_turns(wanted, kept or Kept(wanted.folder / "turns.jsonl"), Unheard())


def test_contenders_take_turns_and_their_last_line_counts(tmp_path: Path) -> None:
    turns = taken(plan(tmp_path, program("one", SAY % 1), program("two", SAY % 2), turns=2))
    assert [(turn.number, turn.contender, turn.numbers["cpu"]) for turn in turns] == [
        (0, "one", 1), (0, "two", 2), (1, "one", 1), (1, "two", 2),
    ]  # fmt: skip
    assert turns[0].chosen == "this"


def test_size_folder_and_assignments_are_told(tmp_path: Path) -> None:
    code = "import json, sys; print(json.dumps({'numbers': {}, 'chosen': ' '.join(sys.argv[1:])}))"
    (turn,) = taken(plan(tmp_path, program("one", code)))
    assert turn.chosen == f"full {tmp_path.resolve()} key=value"


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not hold processes on cores")
def test_one_core_unless_all(tmp_path: Path) -> None:
    code = SAY % "len(__import__('os').sched_getaffinity(0))"
    turns = taken(plan(tmp_path, program("one", code), program("all", code, all_cores=True)))
    assert [turn.numbers["cpu"] for turn in turns] == [1, len(os.sched_getaffinity(0))]


def test_finished_turns_are_not_repeated_and_half_a_line_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "turns.jsonl"
    first = Turn("T", "one", 0, {"cpu": 7.0})
    path.write_text(json.dumps(vars(first)) + '\n{"workload": "T", "contend')
    turns = taken(plan(tmp_path, program("one", SAY % 1), turns=2), Kept(path))
    assert [turn.numbers["cpu"] for turn in turns] == [7, 1]
    assert len(Kept.anew(path).turns) == 0


def test_what_was_added_after_half_a_line_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "turns.jsonl"
    path.write_text('{"workload": "T", "contend')
    Kept(path).add(Turn("T", "one", 0, {"cpu": 1.0}))
    assert list(Kept(path).turns) == [("T", "one", 0)]


def test_a_failure_is_one_sentence_given_up_and_tried_again_next_time(tmp_path: Path) -> None:
    broken = program("one", "raise ValueError('no luck')")
    turns = taken(plan(tmp_path, broken, turns=3))
    assert [turn.failure for turn in turns] == ["ValueError: no luck"]
    (mended,) = taken(plan(tmp_path, program("one", SAY % 1)))
    assert not mended.failure


def test_no_numbers_and_no_words_is_a_failure(tmp_path: Path) -> None:
    (turn,) = taken(plan(tmp_path, program("one", "import sys; sys.exit(3)")))
    assert turn.failure == "ended with code 3 and without numbers"


def test_time_is_limited_also_for_what_it_started(tmp_path: Path) -> None:
    marker = tmp_path / "alive"
    child = f"import time, pathlib; time.sleep(2.5); pathlib.Path({str(marker)!r}).touch()"
    code = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(60)"
    (turn,) = taken(plan(tmp_path, program("one", code), seconds=1))
    assert turn.failure == "took longer than 1 s"
    time.sleep(2)
    assert not marker.exists()


def test_who_cannot_take_part_says_why(tmp_path: Path) -> None:
    (turn,) = taken(plan(tmp_path, replace(program("one", SAY % 1), unusable="it cannot be installed: no network")))
    assert turn.failure == "it cannot be installed: no network"


def test_only_contenders_of_the_size(tmp_path: Path) -> None:
    turns = taken(plan(tmp_path, program("one", SAY % 1, sizes=("full",)), program("two", SAY % 1, sizes=("small",))))
    assert [turn.contender for turn in turns] == ["one"]
