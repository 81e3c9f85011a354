"""What travels between processes arrives as it was, and what tasks share travels once."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from fedfuse.core.messages import Task, Update
from fedfuse.core.weights import NOTHING, Weights
from fedfuse.engines.jobs import ServerJob, Training
from fedfuse.engines.packing import SharedTensors, as_bytes, pack, tensors_in, unpack
from fedfuse.federation.client_states import HeldStates
from fedfuse.runtime.pool import silence
from tests.helpers import make_bank, make_source, make_weights

TYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.uint8, torch.bool]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)], ids=str)
def test_tensors_of_every_type_and_shape(dtype, shape):
    sent = (torch.rand(shape) * 10).to(dtype)
    (came,) = unpack(pack([sent]))
    assert (came.dtype, came.shape) == (dtype, shape)
    assert torch.equal(came, sent)


def test_a_transposed_tensor_that_requires_a_gradient():
    sent = torch.arange(6.0, requires_grad=True).view(2, 3).T
    assert torch.equal(unpack(pack(sent)), sent)


def test_a_tensor_that_is_there_twice_travels_once():
    tensor = torch.ones(5)
    packed = pack({"a": tensor, "b": [tensor]})
    assert len(packed.tensors) == 1
    assert torch.equal(unpack(packed)["b"][0], tensor)


def test_an_update_with_all_it_may_hold():
    bank = make_bank()
    weights = make_weights(bank, "mlp", 3)
    sent = Update(2, 5, "mlp", weights, 17, {"bits": torch.zeros(3, dtype=torch.uint8)}, {"loss": 0.1}, {})
    came, state = unpack(pack((sent, {"step": torch.tensor(4)})))
    assert came.weights.equals(weights)
    assert (came.round, came.client, came.examples, came.metrics) == (2, 5, 17, {"loss": 0.1})
    assert torch.equal(came.extras["bits"], sent.extras["bits"])
    assert state["step"] == 4


def test_tensors_are_listed_as_they_are_packed():
    sent = {"b": torch.tensor([2.0]), "a": [torch.tensor([[1.0]]), make_source(3)]}
    listed, packed = tensors_in({**sent, "c": sent["b"]}), pack(sent).tensors
    assert any(tensor is sent["a"][1].raw for tensor in listed)
    assert [tensor.tolist() for tensor in as_bytes(listed)] == [tensor.tolist() for tensor in packed]


class TestSharedTensors:
    def shared(self):
        bank = make_bank()
        weights, teacher = make_weights(bank, "mlp", 1), torch.rand(50)
        tasks = [Task(1, c, "mlp", weights, {"teacher": teacher, "own": torch.full((9,), float(c))}) for c in range(3)]
        tasks.append(Task(1, 3, "mlp", NOTHING, {"teacher": teacher}))
        jobs = [
            Training([task], HeldStates({1: {"kept": torch.rand(7)}} if task.client == 1 else {})) for task in tasks
        ]
        return jobs, SharedTensors(jobs)

    def test_every_task_and_state_arrives(self):
        jobs, shared = self.shared()
        for job in jobs:
            came = unpack(shared.packed(job), shared.common())
            assert came.tasks[0].weights.equals(job.tasks[0].weights)
            states = (came.states.get(1, {}), job.states.get(1, {}))
            for there, here in ((came.tasks[0].extras, job.tasks[0].extras), states):
                assert there.keys() == here.keys()
                assert all(torch.equal(there[name], tensor) for name, tensor in here.items())

    def test_what_tasks_share_is_not_packed_with_them(self):
        jobs, shared = self.shared()
        size = jobs[0].tasks[0].weights.nbytes + jobs[0].tasks[0].extras["teacher"].nbytes
        assert sum(map(len, shared.common())) == size
        assert [sum(map(len, shared.packed(job).tensors)) for job in jobs] == [36, 36 + 28, 36, 0]

    def test_equal_tensors_that_are_not_the_same_are_not_mixed_up(self):
        layout = make_bank().layout("mlp")
        tasks = [Task(1, c, "mlp", Weights(torch.zeros(layout.size), layout)) for c in range(2)]
        assert not SharedTensors([Training([task], HeldStates()) for task in tasks]).common()

    def test_what_lasts_does_not_travel(self):
        source = make_source(20)
        lasting = tensors_in({"other": torch.rand(4), "source": source})
        jobs = [ServerJob(1, "work", partial(_sum_of, source, torch.tensor(float(c)))) for c in range(2)]
        shared = SharedTensors(jobs, lasting)
        assert not shared.common()
        for job in jobs:
            packed = shared.packed(job)
            assert [len(tensor) for tensor in packed.tensors] == [4], "the number alone"
            assert torch.equal(unpack(packed, [], as_bytes(lasting))(None, silence), job(None, silence))


def _sum_of(source, number, _progress):
    return source.raw.sum() + number
