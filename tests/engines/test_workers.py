"""Worker processes: the same bits as in this process, for every method and whatever happens to a worker."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
from multiprocessing import spawn

import pytest

from fedfuse.core.errors import DataError, FedfuseError
from fedfuse.engines import LocalEngine
from fedfuse.engines.jobs import ServerJob, WorkerPool
from fedfuse.engines.worker import START_SECONDS, _portable, _seconds_to_start
from fedfuse.engines.workers import AHEAD, WorkersEngine
from fedfuse.experiment.assembly import build
from fedfuse.federation.events import EventLog
from fedfuse.methods import METHODS
from tests.engines.players import Everyone, TrappedEngine, federations, first_clients, result
from tests.helpers import Recorder, played, tiny_config, tiny_method

METHOD = "scaffold"
"""The method for faults: it sends tensors beside weights, and its clients have a state."""


@pytest.fixture(scope="module")
def here():
    return federations()


@pytest.fixture(scope="module")
def engine(here, tmp_path_factory):
    """Two workers for the whole module, because a process takes seconds to start."""
    everyone = Everyone({name: one.engine.clients for name, one in here.items()}, tmp_path_factory.mktemp("traps"))
    engine = WorkersEngine(everyone, 2, timeout=None, log=EventLog())
    yield engine
    engine.close()


@pytest.fixture
def heard(engine, monkeypatch):
    """What the engine says."""
    recorder = Recorder()
    monkeypatch.setattr(engine, "log", EventLog(listeners=(recorder,)))
    return recorder


def everyone(engine):
    return engine.clients


@pytest.mark.parametrize("method", list(METHODS))
def test_same_bits_as_in_this_process(here, engine, method):
    assert result(here[method], engine=engine) == result(here[method])


def test_both_workers_are_busy_and_stay(here, engine):
    before = [worker.pid for worker in engine.workers]
    played(replace(here[METHOD], engine=engine), rounds=2)
    assert None not in before
    assert len({os.getpid(), *before}) == 3
    assert [worker.pid for worker in engine.workers] == before


def test_workers_look_at_the_same_examples_and_not_at_copies(here, engine):
    one = here[METHOD]
    before, inputs = result(one, engine=engine), one.engine.clients.datasets.examples.examples.inputs
    inputs.mul_(2)
    try:
        assert result(one, engine=engine) == result(one) != before
    finally:
        inputs.div_(2)


class Helped(LocalEngine):
    """Clients are here; the server's work is done by workers."""

    def __init__(self, clients, workers, helps=False):
        super().__init__(clients)
        self.many = partial(workers.results, helped_by=clients if helps else None)

    def pool(self, number):
        return WorkerPool(number, self.many)


class TestAnswersThatAreComing:
    """The student learns from the first chunk of answers while workers are at the next ones."""

    @pytest.fixture(autouse=True)
    def small_chunks(self, monkeypatch):
        monkeypatch.setattr("fedfuse.parts.fuse.answers.CHUNK", 8)

    def federation(self, views="fixed", **distiller):
        method = tiny_method("feddf")
        settings = {**method["fuse"]["distiller"], "batch_size": 4, "steps": 12, **distiller}
        method["fuse"] = {**method["fuse"], "views": views, "distiller": settings}
        data = {"name": "digits", "train_limit": 60, "test_limit": 20, "validation": 0.1, "public": 0.5}
        models = {"one": {"arch": "mlp", "hidden": [8]}, "other": {"arch": "mlp", "hidden": [12]}}
        config = tiny_config(method, data={**data, "augment": ["crop"]}, models=models)
        return build(config, EventLog()).federation

    @pytest.mark.parametrize("views", ["fixed", "student", "augmented"])
    @pytest.mark.parametrize("students", ["fuse", "keep"], ids=["several students", "one student"])
    @pytest.mark.parametrize("helps", [False, True], ids=["workers alone", "workers and this process"])
    def test_same_bits(self, engine, views, students, helps):
        here = self.federation(views)
        if students == "keep":
            here = replace(here, settings=here.settings.model_copy(update={"shares": {"other": 0}}))
            fuse = here.recipe.fuse.model_copy(update={"absent": "keep"})
            here = replace(here, recipe=here.recipe.model_copy(update={"fuse": fuse}))
        assert result(here, engine=Helped(here.engine.clients, engine, helps)) == result(here)

    def test_same_bits_where_answers_are_too_many_to_be_kept(self, engine, monkeypatch):
        monkeypatch.setattr("fedfuse.parts.fuse.answers.KEPT", 0)
        here = self.federation("augmented")
        assert result(here, engine=Helped(here.engine.clients, engine, helps=True)) == result(here)

    @pytest.mark.parametrize("views", ["fixed", "augmented"])
    def test_a_student_that_stops_early_leaves_nothing_behind(self, engine, views):
        here = self.federation(views, steps=400, patience=2, evaluate_every=2)
        there = Helped(here.engine.clients, engine)
        before = [worker.pid for worker in engine.workers]
        assert result(here, engine=there) == result(here)
        assert [worker.pid for worker in engine.workers] == before, "no worker had to be ended for it"
        workers = [engine._idle.get(timeout=20) for _ in engine.workers]
        for worker in workers:
            engine._idle.put(worker)
        assert engine._threads._work_queue.empty()

    @pytest.mark.long  # as TestFaults.test_a_worker_killed_while_it_asks_a_teacher, with answers that come ahead
    def test_a_worker_killed_while_the_student_learns(self, engine, heard):
        here = self.federation("augmented")
        everyone(engine).lay("teacher", "SIGKILL")
        there = TrappedEngine(Helped(here.engine.clients, engine), everyone(engine).traps)
        assert result(here, engine=there) == result(here)
        assert len(heard.of("work_retried")) == 1

    def test_no_more_is_done_ahead_than_workers_have_room_for(self, engine):
        jobs = [ServerJob(1, f"job {n}", partial(_told, n)) for n in range(100)]
        results = engine.results(jobs)
        next(results)
        under_way = engine._threads._work_queue.qsize() + len(engine.workers)
        results.close()
        assert under_way <= AHEAD * len(engine.workers)
        assert sorted(n for _, n in engine.results(jobs[:5])) == list(range(5))


def _told(number, _progress):
    return number


def test_a_start_has_its_own_time():
    assert _seconds_to_start(None) is None
    assert _seconds_to_start(0.5) == START_SECONDS
    assert _seconds_to_start(2 * START_SECONDS) == 2 * START_SECONDS


class TestFaults:
    def test_all_workers_killed_in_the_middle_of_a_round(self, here, engine, heard):
        victims = first_clients(here[METHOD], 2)
        for client in victims:
            everyone(engine).lay(client, "SIGKILL")
        assert result(here[METHOD], engine=engine) == result(here[METHOD])
        events = heard.of("client_retried")
        assert set(victims) <= {event["client"] for event in events}, "and whoever trained together with them"
        assert {event["round"] for event in events} == {1}
        assert {event["reason"] for event in events} == {"its worker was killed by SIGKILL"}

    def test_a_worker_killed_while_it_asks_a_teacher(self, here, engine, heard):
        everyone(engine).lay("teacher", "SIGKILL")
        assert result(here["feddf"], engine=TrappedEngine(engine, everyone(engine).traps)) == result(here["feddf"])
        (event,) = heard.of("work_retried")
        assert event["round"] == 1
        assert event["what"].startswith("teacher")
        assert event["reason"] == "its worker was killed by SIGKILL"

    def test_a_worker_that_hangs(self, here, engine, heard, monkeypatch):
        monkeypatch.setattr(engine, "timeout", 2.0)
        everyone(engine).lay(*first_clients(here[METHOD], 1), "SIGSTOP")
        assert result(here[METHOD], engine=engine) == result(here[METHOD])
        assert {event["reason"] for event in heard.of("client_retried")} == {"its worker gave no answer in 2 s"}

    def test_a_worker_stopped_at_birth(self, here, tmp_path, monkeypatch):
        """It reads nothing of what it is born with, which is more than a pipe holds. Others may take their time."""
        limits = chain([2.0], repeat(100.0))
        monkeypatch.setattr("fedfuse.engines.worker._seconds_to_start", lambda _: next(limits))
        stops_one_process(monkeypatch, tmp_path)
        clients = Laden({METHOD: here[METHOD].engine.clients}, tmp_path, bytes(500 * 1024))
        engine = WorkersEngine(clients, 1, timeout=100.0, log=EventLog(listeners=(heard := Recorder(),)))
        try:
            assert result(here[METHOD], engine=engine) == result(here[METHOD])
        finally:
            engine.close()
        assert {event["reason"] for event in heard.of("client_retried")} == {"its worker gave no answer in 2 s"}

    def test_closed_while_a_worker_hangs_at_birth(self, here, tmp_path, monkeypatch):
        stops_one_process(monkeypatch, tmp_path)
        clients = Laden({METHOD: here[METHOD].engine.clients}, tmp_path, bytes(500 * 1024))
        engine = WorkersEngine(clients, 1, timeout=None, log=EventLog())
        jobs = engine.results([ServerJob(1, "nothing", partial(_told, 1))])

        def ask():
            with suppress(FedfuseError):
                list(jobs)

        asking = threading.Thread(target=ask)
        asking.start()
        deadline = time.monotonic() + 20
        while not (tmp_path / "stopped").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        engine.close()
        asking.join(10)
        assert not asking.is_alive()

    def test_a_client_that_kills_every_worker(self, here, engine, monkeypatch):
        monkeypatch.setattr("fedfuse.engines.workers.ATTEMPTS", 2)
        everyone(engine).lay(*first_clients(here[METHOD], 1), "SIGKILL", times=2)
        with pytest.raises(FedfuseError, match=r"was tried 2 times in round 1, but its worker was killed by SIGKILL"):
            played(replace(here[METHOD], engine=engine), rounds=1)
        assert all(worker.pid is None for worker in engine.workers), "a failed round leaves no process behind"

    def test_a_mistake_of_the_client_is_raised_here_and_not_retried(self, here, engine):
        alone = WorkersEngine(everyone(engine), 1, timeout=None, log=EventLog(listeners=(heard := Recorder(),)))
        everyone(engine).lay(*first_clients(here[METHOD], 1), "ZeroDivisionError")
        with pytest.raises(ZeroDivisionError, match="a mistake of its own") as caught:
            played(replace(here[METHOD], engine=alone), rounds=1)
        assert "in work" in "\n".join(caught.value.__notes__), "the worker's own traceback"
        assert not heard.of("client_retried")
        assert all(worker.pid is None for worker in alone.workers)


@dataclass(frozen=True)
class Laden(Everyone):
    """Clients with luggage."""

    luggage: bytes


def stops_one_process(monkeypatch, folder):
    """The next worker stops before Python has begun."""
    (folder / "trap").touch()
    program = folder / "python"
    stop = f"mv {folder}/trap {folder}/stopped 2>/dev/null && kill -STOP $$"
    program.write_text(f'#!/bin/sh\n{stop}\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(spawn, "_python_exe", os.fsencode(program))


def test_errors_that_cannot_travel_keep_their_sentence():
    class AwkwardError(DataError):
        def __init__(self, one, two):
            super().__init__(f"{one} and {two}")

    def failed(error):
        try:
            error.add_note("while client 3 trained")
            raise error
        except Exception as raised:
            return _portable(raised)

    awkward = failed(AwkwardError(1, 2))
    assert isinstance(awkward, FedfuseError)
    assert str(awkward) == "1 and 2"
    assert awkward.__notes__ == ["while client 3 trained"]
    plain = DataError("too few")
    assert failed(plain) is plain
