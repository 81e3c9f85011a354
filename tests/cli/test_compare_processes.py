"""``fedfuse compare --jobs`` as the system sees it: noisy runs, and whoever ends the command ends its runs."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_cli import InProcess, command, in_process, settings
from tests.helpers import events_of, files_of

__all__ = ["in_process"]

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
NOISE = """
import pathlib, sys, time
from fedfuse.parts.metrics import Metric

class Noise(Metric):
    def compute(self, predictions):
        sys.stderr.write("careful, " * 20_000)
        if pathlib.Path("slow").exists():
            time.sleep(0.3)
        return 0.0
"""
"""Measured in every round; a pipe that nobody reads holds 64 kB."""
ROUNDS = 9
SLOW = settings(
    "method=fedavg", f"federation.rounds={ROUNDS}", "federation.checkpoint_every=1", "training.epochs=1",
    "evaluation.metrics=['noise:Noise']", "evaluation.pictures=false",
)  # fmt: skip
RUNS = ("digits-fedavg-seed0", "digits-fedavg-seed1")
STUDY = ("compare", "digits", "--seeds", "0,1", *SLOW, "--out", "study", "--jobs", "2")


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def finished_rounds(folder: Path) -> int:
    logs = [folder / "study" / run / "events.jsonl" for run in RUNS]
    return min(log.read_text().count('"round_finished"') if log.exists() else 0 for log in logs)


def test_ended_in_any_way_it_leaves_nobody_and_the_same_command_goes_on(tmp_path: Path, in_process: InProcess) -> None:
    (tmp_path / "noise.py").write_text(NOISE)
    (tmp_path / "slow").touch()
    for rounds, end in ((1, signal.SIGKILL), (3, signal.SIGTERM)):
        with subprocess.Popen(
            command(*STUDY), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as study:
            wait_until(
                lambda rounds=rounds, study=study: finished_rounds(tmp_path) >= rounds or study.poll() is not None
            )
            assert study.poll() is None, study.communicate()[1].decode()[-2000:]
            runs = children(study.pid)
            assert len(runs) == 2
            os.kill(study.pid, end)
            said = study.communicate(timeout=30)[1].decode()
        wait_until(lambda runs=runs: not any(map(is_alive, runs)), seconds=10)
        if end == signal.SIGTERM:
            assert study.returncode == 2
            assert said.strip().endswith("interrupted; finished rounds are kept, go on with: the same command")
            assert "Traceback" not in said
    assert finished_rounds(tmp_path) < ROUNDS
    (tmp_path / "slow").unlink()
    done = in_process(*STUDY)
    assert done.returncode == 0, done.stderr
    for seed, run in enumerate(RUNS):
        assert len(events_of(tmp_path / "study" / run, "run_started")) == 1, "it did not begin anew"
        assert in_process("run", "digits", "--seed", str(seed), *SLOW, "--out", f"straight-{seed}").returncode == 0
        assert files_of(tmp_path / "study" / run / "final") == files_of(tmp_path / f"straight-{seed}" / "final")
