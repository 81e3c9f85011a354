"""This process and workers that join it: the same bits whoever did what, and only where it is worth it."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from fedfuse.core.errors import ConfigError, FedfuseError
from fedfuse.engines import LocalEngineSettings, joined, workers
from fedfuse.engines.joined import JoinedEngine
from fedfuse.engines.local import LocalEngine
from fedfuse.engines.packing import tensors_in
from fedfuse.engines.workers import WorkersEngine
from fedfuse.federation.events import EventLog
from tests.engines.players import federation, result
from tests.helpers import Recorder, played


class AtOnce(Thread):
    """A thread that is awaited."""

    def start(self) -> None:
        super().start()
        self.join()


@pytest.fixture
def eager(monkeypatch):
    """Workers are worth it at once, and waited for."""
    monkeypatch.setattr(joined, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(joined, "WORTH_A_JOB", 0.0)
    monkeypatch.setattr(joined, "Thread", AtOnce)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("method", ["scaffold", "feddf"])
def test_same_bits_as_in_this_process_alone(method):
    here, heard = federation(method), Recorder()
    engine = JoinedEngine(here.engine.clients, EventLog(listeners=(heard,)), others=1)
    try:
        assert result(here, engine=engine) == result(here)
        assert engine.workers is not None
        assert engine.workers.workers[0].pid not in (None, os.getpid())
    finally:
        engine.close()
    assert [event["workers"] for event in heard.of("workers_joined")] == [1]


@pytest.mark.usefixtures("eager")
def test_this_process_goes_on_working(monkeypatch):
    here = federation("fedavg")
    engine = JoinedEngine(here.engine.clients, EventLog(), others=1)
    own, kind = [], type(here.engine.clients)
    work = kind.work_together
    monkeypatch.setattr(kind, "work_together", lambda c, t, s: own.append(t[0].round) or work(c, t, s))
    try:
        played(replace(here, engine=engine), rounds=3)
    finally:
        engine.close()
    everybody = len(here.chosen(here.key))
    assert all(1 <= own.count(number) < everybody for number in (1, 2, 3)), "both do their part in every round"


@pytest.mark.parametrize(("seconds", "job"), [(1e9, 0.0), (0.0, 1e9)], ids=["little is left", "jobs are tiny"])
def test_nobody_is_started_where_it_does_not_pay(monkeypatch, seconds, job):
    monkeypatch.setattr(joined, "WORTH_SECONDS", seconds)
    monkeypatch.setattr(joined, "WORTH_A_JOB", job)
    here = federation("fedavg")
    engine = JoinedEngine(here.engine.clients, EventLog(), others=4)
    assert result(here, engine=engine) == result(here)
    assert engine.workers is None


@pytest.mark.usefixtures("eager")
def test_no_more_workers_than_cores_memory_and_jobs(monkeypatch):
    here = federation("fedavg")
    monkeypatch.setattr(joined, "room_for_workers", lambda: 0)
    engine = JoinedEngine(here.engine.clients, EventLog(), others=4)
    played(replace(here, engine=engine), rounds=2)
    assert engine.workers is None
    assert joined.other_cores() == len(os.sched_getaffinity(0)) - 1


def test_one_core_means_this_process_alone(monkeypatch):
    monkeypatch.setattr("fedfuse.engines.local.other_cores", lambda: 0)
    opened = LocalEngineSettings().open(federation("fedavg").engine.clients, EventLog())
    assert type(opened) is LocalEngine


def test_a_worker_of_a_pool_which_may_have_no_processes_is_alone(monkeypatch):
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    clients = federation("fedavg").engine.clients
    assert type(LocalEngineSettings().open(clients, EventLog())) is LocalEngine
    with pytest.raises(ConfigError, match=r"engine\.workers = 2 needs processes of its own.* set workers to 1"):
        LocalEngineSettings(workers=2).open(clients, EventLog())


def test_closed_while_workers_start(monkeypatch):
    monkeypatch.setattr(joined, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(joined, "WORTH_A_JOB", 0.0)
    here = federation("fedavg")
    engine = JoinedEngine(here.engine.clients, EventLog(), others=1)
    assert result(here, engine=engine) == result(here)
    engine.close()
    assert engine.workers is not None
    assert all(worker.pid is None for worker in engine.workers.workers)


SCRIPT = """
    import fedfuse
    from fedfuse.engines import joined

    joined.WORTH_SECONDS = joined.WORTH_A_JOB = 0.0
    joined.Thread = type("AtOnce", (joined.Thread,), {"start": lambda self: self.run()})
    brief = {"federation": {"rounds": 2}, "training": {"epochs": 1}, "evaluation": {"pictures": False}}
    run = fedfuse.Experiment.load("digits", method="fedavg", **brief).run("out")
    print("runs", run.folder.events.read_text().count("workers_joined"))
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs a second core")
def test_a_script_needs_no_guard(tmp_path: Path):
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "runs 1"


def test_no_start_moves_what_this_process_computes_with():
    """Workers are started by a thread, while this one trains: memory that it reads must not be given back."""
    clients = federation("feddf").engine.clients
    engine = WorkersEngine(clients, 1, None, EventLog(), imports_script=False)
    where = [tensor.data_ptr() for tensor in tensors_in(clients)]
    try:
        assert engine.started()
    finally:
        engine.close()
    assert where == [tensor.data_ptr() for tensor in tensors_in(clients)]


def test_a_run_without_room_in_the_shared_memory_stays_in_this_process(monkeypatch):
    def full(_tensors):
        raise FedfuseError("no room")

    monkeypatch.setattr(workers, "in_shared_memory", full)
    monkeypatch.setattr(joined, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(joined, "WORTH_A_JOB", 0.0)
    here, heard = federation("fedavg"), Recorder()
    engine = JoinedEngine(here.engine.clients, EventLog(listeners=(heard,)), others=1)
    assert result(here, engine=engine) == result(here)
    assert engine.workers is None
    assert heard.of("workers_joined") == []
