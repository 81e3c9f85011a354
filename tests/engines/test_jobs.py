"""The server's heavy work done by copies, as in other processes: every method has the bits it has here."""

from __future__ import annotations

import pytest
import torch

from fedfuse.engines import LocalEngine
from fedfuse.engines.jobs import ServerJob, WorkerPool, exhausted
from fedfuse.engines.packing import SharedTensors, as_bytes, pack, tensors_in, unpack
from fedfuse.experiment.assembly import build
from fedfuse.federation.events import EventLog
from fedfuse.methods import METHODS
from tests.engines.players import federation, result
from tests.helpers import Recorder, tiny_config, tiny_method


class FarEngine(LocalEngine):
    """Clients are here; the server's work is packed, done by whoever comes last first, and packed again."""

    def __init__(self, clients):
        super().__init__(clients)
        self.lasting = tensors_in(clients)
        self.done = []

    def pool(self, number):
        return WorkerPool(number, self.many, self.alone)

    def many(self, jobs):
        shared = SharedTensors(jobs, self.lasting)
        for place in reversed(range(len(jobs))):
            yield place, self.there(shared, jobs[place])

    def alone(self, job, progress):
        return self.there(SharedTensors([job], self.lasting), job, progress)

    def there(self, shared, job, progress=None):
        self.done.append((job.round, job.name))
        copy = unpack(shared.packed(job), shared.common(), as_bytes(self.lasting))
        before = torch.get_num_threads()
        torch.set_num_threads(before + 1)  # as it may be anywhere else
        try:
            return unpack(pack(copy(None, progress)))
        finally:
            torch.set_num_threads(before)


@pytest.mark.parametrize("method", list(METHODS))
def test_same_bits_for_every_method(method):
    here = federation(method)
    assert result(here, engine=FarEngine(here.engine.clients)) == result(here)


@pytest.mark.parametrize("views", ["student", "augmented"])
def test_same_bits_with_augmented_views(views):
    method = tiny_method("feddf")
    method["fuse"] = {**method["fuse"], "views": views}
    data = {"name": "digits", "validation": 0.1, "public": 0.1, "augment": ["crop"]}
    here = build(tiny_config(method, data=data), EventLog()).federation
    engine = FarEngine(here.engine.clients)
    assert result(here, engine=engine) == result(here)
    asked = [name for _, name in engine.done if name.startswith("teacher")]
    assert bool(asked) == (views == "student"), "teachers who see every step's own views are asked during it"


@pytest.mark.parametrize("data", [{"name": "digits", "augment": ["crop"]}, {"name": "blobs", "examples": 150}])
@pytest.mark.parametrize("kind", ["uniform_noise", "gaussian_noise"])
def test_same_bits_with_fresh_inputs(kind, data):
    config = tiny_config("feddf", data={"validation": 0.1, **data}, source={"kind": kind, "size": 40, "fresh": True})
    here = build(config, EventLog()).federation
    engine = FarEngine(here.engine.clients)
    assert result(here, engine=engine) == result(here)
    assert not [name for _, name in engine.done if name.startswith("teacher")]


def test_what_is_done_elsewhere():
    """Every teacher by itself, and every student; nothing for a method without fusion."""
    heard = Recorder()
    fusing, plain = federation("feddf"), federation("fedavg")
    engine = FarEngine(fusing.engine.clients)
    result(fusing, engine=engine, log=EventLog(listeners=(heard,)))
    teachers = [(1, "teacher 2"), (1, "teacher 1"), (1, "teacher 0")]
    assert [job for job in engine.done if job[0] == 1] == [*teachers, (1, "the distillation")]
    ticks = {(tick["what"], tick["done"], tick["total"]) for tick in heard.of("tick")}
    assert {("teachers", 0, 3), ("teachers", 3, 3), ("distil", 4, 5)} <= ticks
    engine = FarEngine(plain.engine.clients)
    result(plain, engine=engine)
    assert not engine.done


def test_what_is_common_to_teachers_is_packed_once():
    """Public inputs are no part of a parcel: processes have them since their start."""
    here = federation("feddf")
    weights = here.bank.layout("feddf").size * 4
    parcels = []

    class Weighing(FarEngine):
        def there(self, shared, job, progress=None):
            parcels.append((job.name, sum(map(len, shared.packed(job).tensors)), sum(map(len, shared.common()))))
            return super().there(shared, job, progress)

    result(here, engine=Weighing(here.engine.clients))
    own = {size for name, size, _ in parcels if name.startswith("teacher")}
    assert own == {weights}
    asked = 8 * len(here.source)
    assert {common for name, _, common in parcels if name.startswith("teacher")} == {asked}, "which inputs they are"


def test_without_anybody_for_long_work_it_is_done_here():
    assert WorkerPool(1, None).run("work", lambda progress: progress, 7) == 7


def test_what_is_said_of_a_lost_job():
    job = ServerJob(3, "teacher 1", None)
    job.retried(EventLog(listeners=(heard := Recorder(),)), "it fell asleep")
    (event,) = heard.of("work_retried")
    assert (event["round"], event["what"], event["reason"]) == (3, "teacher 1", "it fell asleep")
    assert str(exhausted(job, 3, "it fell asleep")).startswith(
        "teacher 1 was tried 3 times in round 3, but it fell asleep; finished rounds are kept"
    )
