"""Every event in a line, and no event twice."""

from __future__ import annotations

import json
from pathlib import Path

from fedfuse.cli.verbose import LONGEST, narrated
from tests.cli.test_cli import InProcess, settings
from tests.cli.test_cli import in_process as in_process

QUICK = settings("method=fedavg", "federation.rounds=1", "training.epochs=1", "evaluation.pictures=false")


def test_an_event_is_told_in_words() -> None:
    event = {
        "event": "client_finished",
        "time": 3.0,
        "client": 4,
        "metrics": {"loss": 0.123456},
        "refused": [],
        "x": None,
    }
    assert narrated(event) == "client finished: client 4, metrics loss 0.1235"
    assert narrated({"event": "round_started", "clients": list(range(1000))}) == "round started: 1000 clients"
    assert len(narrated({"event": "odd", "name": "[bold]" + "x" * 10_000})) == LONGEST


def test_a_run_and_a_comparison_tell_what_their_logs_have(tmp_path: Path, in_process: InProcess) -> None:
    done = in_process("run", "digits", *QUICK, "-v", "--out", "one")
    assert done.returncode == 0, done.stderr
    log = [json.loads(line)["event"] for line in (tmp_path / "one" / "events.jsonl").read_text().splitlines()]
    told = [
        line.split(" s  ")[1].split(":")[0].replace(" ", "_") for line in done.stdout.splitlines() if " s  " in line
    ]
    assert told == log
    both = in_process("compare", "digits", *QUICK, "--verbose", "--out", "two")
    assert both.stdout.count(" s  client finished: ") == log.count("client_finished")
    assert " s  " not in in_process("run", "digits", *QUICK, "--out", "three").stdout


def test_quiet_is_quiet_everywhere(in_process: InProcess) -> None:
    for words in (("run", "digits", "--out", "q1"), ("compare", "digits", "--out", "q2")):
        done = in_process(*words, *QUICK, "-q")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_workers_of_a_comparison_are_those_of_its_runs(tmp_path: Path, in_process: InProcess) -> None:
    assert in_process("compare", "digits", *QUICK, "--workers", "0", "--out", "w", "-q").returncode == 0
    config = next((tmp_path / "w").glob("*/config.yaml")).read_text()
    assert "workers: 0" in config
