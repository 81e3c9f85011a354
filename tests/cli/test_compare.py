"""``fedfuse compare`` when something goes wrong: finished runs are kept and shown, and the same command goes on."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from fedfuse.core.errors import FedfuseError
from fedfuse.experiment.comparison import Cell, run_process, running
from tests.cli.test_cli import QUICK, InProcess, in_process, only_sentence, settings
from tests.helpers import files_of

__all__ = ["in_process"]

pytestmark = pytest.mark.usefixtures("without_pictures")

STUDY = ("compare", "digits", "--methods", "fedavg,fedprox", "--seeds", "0,1", *settings(*QUICK), "--out", "study")
RUNS = ("digits-fedavg-seed0", "digits-fedavg-seed1", "digits-fedprox-seed0", "digits-fedprox-seed1")


def finished(folder: Path) -> set[str]:
    return {summary.parent.name for summary in (folder / "study").glob("*/summary.json")}


def stop_at(monkeypatch: pytest.MonkeyPatch, label: str, error: BaseException) -> None:
    """Whatever happens when this run's turn comes."""
    run = running._run

    def stopped(cell, *rest):  # type: ignore[no-untyped-def]
        if cell.label == label:
            raise error
        return run(cell, *rest)

    monkeypatch.setattr(running, "_run", stopped)


def test_an_impossible_method_is_refused_before_the_first_run(tmp_path: Path, in_process: InProcess) -> None:
    arguments = ("compare", "digits", "--methods", "fedavg,fedgkd-vote", *settings(*QUICK, "data.validation=0"))
    said = only_sentence(in_process(*arguments))
    assert said.startswith("digits fedgkd-vote seed 0: ")
    assert said.endswith("set data.validation")
    assert not list(tmp_path.iterdir())


def test_a_failure_in_the_middle_shows_what_is_finished(
    tmp_path: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at(monkeypatch, "digits fedprox seed 1", FedfuseError("the roof fell in"))
    done = in_process(*STUDY)
    assert done.returncode == 2
    assert done.stderr.strip() == "fedfuse: the roof fell in"
    assert re.search(r"fedavg +\S+ ± .* 2$", done.stdout, re.MULTILINE)  # the last column: how many seeds
    assert re.search(r"fedprox +\d+\.\d+ +\d+\.\d+ .* 1$", done.stdout, re.MULTILINE)
    assert "missing  1 of 4 runs" in done.stdout
    record = json.loads((tmp_path / "study" / "comparison.json").read_text())
    assert record["unfinished"] == ["digits fedprox seed 1"]


def test_the_same_command_with_overwrite_goes_on_after_ctrl_c(
    tmp_path: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        stop_at(patch, "digits fedprox seed 0", KeyboardInterrupt())
        stopped = in_process(*STUDY, "--overwrite")
    assert stopped.returncode == 2
    assert stopped.stderr.strip().endswith("finished rounds are kept, go on with: the same command")
    assert finished(tmp_path) == set(RUNS[:2])
    before = files_of(tmp_path / "study")
    begun = [(tmp_path / "study" / run / "events.jsonl").read_text() for run in RUNS[:2]]
    with monkeypatch.context() as patch:
        stop_at(patch, "digits fedprox seed 0", KeyboardInterrupt())
        in_process(*STUDY, "--overwrite")  # stopped at the same place: nothing that was finished is touched
    assert finished(tmp_path) == set(RUNS[:2])
    done = in_process(*STUDY, "--overwrite")
    assert done.returncode == 0, done.stderr
    assert finished(tmp_path) == set(RUNS)
    after = files_of(tmp_path / "study")
    assert {name: after[name] for name in before} == before
    assert [(tmp_path / "study" / run / "events.jsonl").read_text() for run in RUNS[:2]] == begun
    assert "missing" not in done.stdout


def test_overwrite_replaces_only_the_run_that_another_experiment_made(tmp_path: Path, in_process: InProcess) -> None:
    assert in_process(*STUDY).returncode == 0
    before = {run: (tmp_path / "study" / run / "events.jsonl").read_text() for run in RUNS}
    other = settings("methods.fedprox.local.strength=5")
    said = only_sentence(in_process(*STUDY, *other))
    assert "strength is 0.01 there and 5.0 here; choose another --out, or replace it with --overwrite" in said
    done = in_process(*STUDY, *other, "--overwrite")
    assert done.returncode == 0, done.stderr
    after = {run: (tmp_path / "study" / run / "events.jsonl").read_text() for run in RUNS}
    assert {run for run in RUNS if after[run] != before[run]} == set(RUNS[2:])


def test_processes_keep_and_replace_the_same_runs(tmp_path: Path, in_process: InProcess) -> None:
    one = ("compare", "digits", "--methods", "fedavg,fedprox", *settings(*QUICK), "--out", "study")
    assert in_process(*one).returncode == 0
    before = (tmp_path / "study" / RUNS[0] / "events.jsonl").read_text()
    done = in_process(*one, *settings("methods.fedprox.local.strength=5"), "--overwrite", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "study" / RUNS[0] / "events.jsonl").read_text() == before
    assert "strength: 5.0" in (tmp_path / "study" / RUNS[2] / "config.yaml").read_text()
    rows = json.loads((tmp_path / "study" / "comparison.json").read_text())["rows"]
    assert [row["method"] for row in rows] == ["fedavg", "fedprox"]


def test_a_failing_process_shows_what_the_others_finished(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = run_process._command
    fails = (
        "import pathlib, sys, time\n"
        f"while not pathlib.Path('study/{RUNS[0]}/summary.json').exists(): time.sleep(0.05)\n"
        "sys.exit('careful' * 100_000 + '\\nfedfuse: the roof fell in')\n"
    )

    def failing(cell: Cell, alone: bool) -> list[str]:
        assert not alone
        return [sys.executable, "-c", fails] if cell.label == "digits fedprox seed 0" else command(cell, alone)

    monkeypatch.setattr(run_process, "_command", failing)
    done = in_process("compare", "digits", "--methods", "fedavg,fedprox", *STUDY[6:], "--jobs", "2")
    assert done.returncode == 2
    assert done.stderr.strip() == "fedfuse: digits fedprox seed 0: the roof fell in"
    assert re.search(r"fedavg +\d+\.\d+ ", done.stdout)
    assert "missing  1 of 2 runs" in done.stdout


def test_runs_that_taught_nothing_are_in_the_table_like_others(tmp_path: Path, in_process: InProcess) -> None:
    """In a process of its own, which ends with 3."""
    wild = settings(*QUICK, "training.optimizer.learning_rate=1e30", "partition.clients=4")
    done = in_process("compare", "digits", "--methods", "fedavg", *wild, "--out", "study", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads((tmp_path / "study" / "comparison.json").read_text())["rows"]
    assert (row["updates_refused"], row["clients_absent"], row["clients_late"]) == ([4], [0], [0])
    assert "refused" in done.stdout
    assert not re.search("absent|late|screened", done.stdout), "a column that says nothing is left out"


def test_resume_and_overwrite_together_are_refused(in_process: InProcess) -> None:
    said = only_sentence(in_process("run", "digits", "--resume", "--overwrite", *settings(*QUICK)))
    assert said == "--resume goes on with a run and --overwrite replaces it; give one of them"
