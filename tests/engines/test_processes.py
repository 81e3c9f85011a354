"""A run with workers as the system sees it: no orphans, no noise, and any engine finishes what another began."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedfuse.experiment.run import Experiment
from tests.helpers import files_of, tiny_config, without_seconds

pytestmark = pytest.mark.usefixtures("without_pictures")
linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
PAUSE = """
import sys, time
from fedfuse.cli import progress
calm = progress.RunProgress.__call__
progress.RunProgress.__call__ = lambda self, event: (time.sleep(0.3), calm(self, event))
from fedfuse.cli import main
main()
"""
"""The command line, with a rest at every event, so that there is time to interrupt it."""


def start(out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PAUSE, "run", str(out), "--resume", "--quiet", "--workers", "2"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)


def workers_of(pid: int) -> set[int]:
    """The process's children that are at work."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == pid and state != "Z" and b"spawn_main" in (stat.parent / "cmdline").read_bytes():
                found.add(int(stat.parent.name))
        except OSError:
            continue
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def in_the_middle(process: subprocess.Popen[str], out: Path) -> set[int]:
    """Wait until workers have trained a client; who they are."""
    log = out / "events.jsonl"
    told = log.read_text().count("client_finished")
    wait_until(lambda: process.poll() is not None or log.read_text().count("client_finished") > told)
    assert process.poll() is None, process.stderr.read()
    return workers_of(process.pid)


@linux
def test_killed_interrupted_and_finished_by_another_engine(tmp_path):
    config = tiny_config("scaffold", federation={"rounds": 6, "participation": 0.75})
    expected = Experiment(config).run(tmp_path / "straight")
    out = tmp_path / "run"

    def stop(event):
        if event["event"] == "round_finished" and event["round"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Experiment(config).run(out, listeners=(stop,))

    killed = start(out)
    workers = in_the_middle(killed, out)
    assert len(workers) == 2
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    wait_until(lambda: not any(map(is_alive, workers)), seconds=60)  # one may still be at its imports
    killed.stderr.close()

    interrupted = start(out)
    workers = in_the_middle(interrupted, out)
    assert len(workers) == 2
    for _ in range(5):
        os.killpg(interrupted.pid, signal.SIGINT)  # as a terminal does: to everybody
        time.sleep(0.02)
    _, errors = interrupted.communicate(timeout=30)
    assert interrupted.returncode == 2
    assert errors.strip().replace("\n", " ").startswith("fedfuse: interrupted; finished rounds are kept"), errors
    assert "Traceback" not in errors
    assert not any(map(is_alive, workers))

    finished = Experiment.load(out, ["engine.workers=1"]).run(out, resume=True)
    assert files_of(finished.folder.final) == files_of(expected.folder.final)
    assert without_seconds(finished.summary) == without_seconds(expected.summary)
