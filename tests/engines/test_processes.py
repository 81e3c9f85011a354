"""A run with workers as the system sees it: no orphans, no noise, and any engine finishes what another began."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from fedfuse.cli import progress
from fedfuse.experiment.run import Experiment
from tests.helpers import files_of, tiny_config, without_seconds
from tests.reliability.forked import Forked, command_line, is_alive, is_worker

pytestmark = pytest.mark.usefixtures("without_pictures")
linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")


def run_slowly(out: Path) -> None:
    """The command line, with a rest at every event, so that there is time to interrupt it."""
    calm = progress.RunProgress.__call__
    progress.RunProgress.__call__ = lambda self, event: (time.sleep(0.3), calm(self, event))
    command_line("run", str(out), "--resume", "--quiet", "--workers", "2")


def wait_until(condition, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def in_the_middle(process: Forked, out: Path) -> set[int]:
    """Wait until workers have trained a client; who they are."""
    log = out / "events.jsonl"
    told = log.read_text().count("client_finished")
    process.wait(lambda: log.read_text().count("client_finished") > told)
    assert process.code() is None, process.last_words()
    return set(filter(is_worker, process.below()))


@linux
@pytest.mark.long
def test_killed_interrupted_and_finished_by_another_engine(tmp_path):
    config = tiny_config("scaffold", federation={"rounds": 6, "participation": 0.75})
    expected = Experiment(config).run(tmp_path / "straight")
    out = tmp_path / "run"

    def stop(event):
        if event["event"] == "round_finished" and event["round"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Experiment(config).run(out, listeners=(stop,))

    killed = Forked(partial(run_slowly, out), tmp_path / "killed")
    workers = in_the_middle(killed, out)
    assert len(workers) == 2
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    wait_until(lambda: not any(map(is_alive, workers)), seconds=60)  # one may still be at its imports

    interrupted = Forked(partial(run_slowly, out), tmp_path / "interrupted")
    workers = in_the_middle(interrupted, out)
    assert len(workers) == 2
    for _ in range(5):
        os.killpg(interrupted.pid, signal.SIGINT)  # as a terminal does: to everybody
        time.sleep(0.02)
    interrupted.wait(seconds=30)
    assert interrupted.code() == 2
    errors = interrupted.log.read_text()
    assert errors.strip().replace("\n", " ").startswith("fedfuse: interrupted; finished rounds are kept"), errors
    assert "Traceback" not in errors
    assert not any(map(is_alive, workers))

    finished = Experiment.load(out, ["engine.workers=1"]).run(out, resume=True)
    assert files_of(finished.folder.final) == files_of(expected.folder.final)
    assert without_seconds(finished.summary) == without_seconds(expected.summary)
