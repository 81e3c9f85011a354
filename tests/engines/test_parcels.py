"""What travels between processes arrives as it was, and what tasks share travels once."""

from __future__ import annotations

import pytest
import torch

from fedfuse.core.messages import Task, Update
from fedfuse.core.weights import NOTHING, Weights
from fedfuse.engines.parcels import Cargo, pack, unpack
from tests.helpers import make_bank, make_weights

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
    parcel = pack({"a": tensor, "b": [tensor]})
    assert len(parcel.tensors) == 1
    assert torch.equal(unpack(parcel)["b"][0], tensor)


def test_an_update_with_all_it_may_hold():
    bank = make_bank()
    weights = make_weights(bank, "mlp", 3)
    sent = Update(2, 5, "mlp", weights, 17, {"bits": torch.zeros(3, dtype=torch.uint8)}, {"loss": 0.1}, {})
    came, state = unpack(pack((sent, {"step": torch.tensor(4)})))
    assert came.weights.equals(weights)
    assert (came.round, came.client, came.examples, came.metrics) == (2, 5, 17, {"loss": 0.1})
    assert torch.equal(came.extras["bits"], sent.extras["bits"])
    assert state["step"] == 4


class TestCargo:
    def cargo(self):
        bank = make_bank()
        weights, teacher = make_weights(bank, "mlp", 1), torch.rand(50)
        tasks = [Task(1, c, "mlp", weights, {"teacher": teacher, "own": torch.full((9,), float(c))}) for c in range(3)]
        tasks.append(Task(1, 3, "mlp", NOTHING, {"teacher": teacher}))
        states = {1: {"kept": torch.rand(7)}}
        return tasks, states, Cargo(tasks, states)

    def test_every_task_and_state_arrives(self):
        tasks, states, cargo = self.cargo()
        for task in tasks:
            came, state = unpack(cargo.parcel(task), cargo.common())
            assert came.weights.equals(task.weights)
            assert came.extras.keys() == task.extras.keys()
            assert all(torch.equal(came.extras[name], tensor) for name, tensor in task.extras.items())
            assert state.keys() == states.get(task.client, {}).keys()
        assert torch.equal(unpack(cargo.parcel(tasks[1]), cargo.common())[1]["kept"], states[1]["kept"])

    def test_what_tasks_share_is_not_in_their_parcels(self):
        tasks, _, cargo = self.cargo()
        shared = tasks[0].weights.nbytes + tasks[0].extras["teacher"].nbytes
        assert sum(map(len, cargo.common())) == shared
        assert [sum(map(len, cargo.parcel(task).tensors)) for task in tasks] == [36, 36 + 28, 36, 0]

    def test_equal_tensors_that_are_not_the_same_are_not_mixed_up(self):
        layout = make_bank().layout("mlp")
        tasks = [Task(1, c, "mlp", Weights(torch.zeros(layout.size), layout)) for c in range(2)]
        assert not Cargo(tasks, {}).common()
