"""``fedfuse compare --jobs`` as the system sees it: noisy runs, and whoever ends the command ends its runs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.cli.test_cli import InProcess, in_process, settings
from tests.helpers import events_of, files_of
from tests.reliability.forked import Forked, command_line, is_alive

__all__ = ["in_process"]

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
NOISE = """
import pathlib, sys, time
from fedfuse.parts.metrics import Metric

class Noise(Metric):
    def compute(self, predictions):
        sys.stderr.write("careful, " * 20_000)
        if pathlib.Path("slow").exists():
            time.sleep(0.5)
        return 0.0
"""
"""Measured in every round; a pipe that nobody reads holds 64 kB."""
ROUNDS = 7
SLOW = settings(
    "method=fedavg", f"federation.rounds={ROUNDS}", "federation.checkpoint_every=1", "training.epochs=1",
    "evaluation.metrics=['noise:Noise']", "evaluation.pictures=false",
)  # fmt: skip
RUNS = ("digits-fedavg-seed0", "digits-fedavg-seed1")
STUDY = ("compare", "digits", "--seeds", "0,1", *SLOW, "--out", "study", "--jobs", "2")


def wait_until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)


def finished_rounds(folder: Path) -> int:
    logs = [folder / "study" / run / "events.jsonl" for run in RUNS]
    return min(log.read_text().count('"round_finished"') if log.exists() else 0 for log in logs)


@pytest.mark.long
def test_ended_in_any_way_it_leaves_nobody_and_the_same_command_goes_on(
    tmp_path: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "noise.py").write_text(NOISE)
    (tmp_path / "slow").touch()
    for rounds, end in ((1, signal.SIGKILL), (2, signal.SIGTERM)):
        study = Forked(partial(command_line, *STUDY), tmp_path / f"said-{end}")
        study.wait(lambda rounds=rounds: finished_rounds(tmp_path) >= rounds)
        assert study.code() is None, study.last_words()
        runs = study.below()
        assert len(runs) == 2
        os.kill(study.pid, end)
        study.wait()
        wait_until(lambda runs=runs: not any(map(is_alive, runs)), seconds=10)
        if end == signal.SIGTERM:
            said = (tmp_path / f"said-{end}").read_text()
            assert study.code() == 2
            assert said.strip().endswith("interrupted; finished rounds are kept, go on with: the same command")
            assert "Traceback" not in said
    assert finished_rounds(tmp_path) < ROUNDS
    (tmp_path / "slow").unlink()
    done = in_process(*STUDY, "--jobs", "1")
    assert done.returncode == 0, done.stderr
    for seed, run in enumerate(RUNS):
        assert len(events_of(tmp_path / "study" / run, "run_started")) == 1, "it did not begin anew"
        assert in_process("run", "digits", "--seed", str(seed), *SLOW, "--out", f"straight-{seed}").returncode == 0
        assert files_of(tmp_path / "study" / run / "final") == files_of(tmp_path / f"straight-{seed}" / "final")
