"""A run with a method from outside is killed for real, with worker processes at work, and goes on to the same bytes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
import yaml

from fedfuse.experiment.run import Experiment
from tests.helpers import files_of
from tests.outside.parts import TINY

pytestmark = [pytest.mark.usefixtures("without_pictures", "here"), pytest.mark.long]


def test_feddyn_is_killed_twice_and_resumed(here, tmp_path):
    raw = {**TINY, "method": "my_methods:FEDDYN", "federation": {"rounds": 30, "participation": 0.75}}
    expected = Experiment(raw).run(tmp_path / "straight")
    file, out = tmp_path / "experiment.yaml", tmp_path / "run"
    file.write_text(yaml.safe_dump(raw))
    command = [sys.executable, "-m", "fedfuse", "run", str(file), "--out", str(out), "--resume"]
    for workers, reached in (("1", 3), ("2", 6)):
        process = subprocess.Popen([*command, "--workers", workers], cwd=here, stdout=subprocess.DEVNULL)
        wait_for(out / "checkpoints" / f"round-{reached:06d}.safetensors", process)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "it was killed before it could finish"
    resumed = subprocess.run([*command, "--quiet"], cwd=here, check=False, capture_output=True, text=True)
    assert resumed.returncode == 0, resumed.stderr
    assert files_of(out / "final") == files_of(expected.folder.final)


def wait_for(path, process):
    """Until a checkpoint is there, or a later one in its place."""
    deadline = time.monotonic() + 120
    while not any(later.name >= path.name for later in path.parent.glob("round-*")):
        assert process.poll() is None, "it ended by itself"
        assert time.monotonic() < deadline, "the other process did not get there"
        time.sleep(0.002)
