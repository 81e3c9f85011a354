"""FedDF as a Flower strategy, driven by Flower's own loop."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg
from torch import nn

from fedfuse.core.errors import DataError
from fedfuse.flower import FedDF
from fedfuse.parts.fuse import Distiller
from tests.flower.grid import InProcessGrid, Node
from tests.helpers import make_examples


def network():
    return nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))


def client(number):
    """A plain PyTorch client that is good at two of three classes."""
    app, examples = ClientApp(), make_examples(90, seed=number)
    mine = examples.labels != number
    inputs, labels = examples.inputs[mine], examples.labels[mine]

    @app.train()
    def train(message, context):  # noqa: ARG001
        model = network()
        model.load_state_dict(message.content["arrays"].to_torch_state_dict())
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(20):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        metrics = MetricRecord({"num-examples": len(labels)})
        content = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
        return Message(content, reply_to=message)

    return app


@pytest.fixture
def initial():
    torch.manual_seed(0)
    return network().state_dict()


INPUTS = make_examples(120, seed=77).inputs


def run(strategy, initial, rounds=1):
    grid = InProcessGrid({10 + number: Node(client(number), {}, {}) for number in range(3)})
    result = strategy.start(grid=grid, initial_arrays=ArrayRecord(initial), num_rounds=rounds)
    return grid, result.arrays.to_torch_state_dict()


def distance(state, grid):
    """Mean KL from the clients' ensemble to a model, on the unlabelled inputs."""
    teachers = []
    model = network().eval()
    for node in grid.nodes.values():
        reply = node.app(node.messages[-1], None)
        model.load_state_dict(reply.content["arrays"].to_torch_state_dict())
        teachers.append(model(INPUTS).detach())
    target = torch.stack(teachers).mean(0).softmax(1)
    model.load_state_dict(state)
    return float(F.kl_div(model(INPUTS).detach().log_softmax(1), target, reduction="batchmean"))


class OrderedFedAvg(FedAvg):
    """Sums in the nodes' order, because the last bit depends on it."""

    def aggregate_train(self, server_round, replies):
        return super().aggregate_train(server_round, sorted(replies, key=lambda reply: reply.metadata.src_node_id))


def test_no_steps_is_fedavg(initial):
    options = {"fraction_evaluate": 0.0}
    _, averaged = run(OrderedFedAvg(**options), initial)
    _, fused = run(FedDF(network, INPUTS, Distiller(steps=0), **options), initial)
    assert all(torch.equal(averaged[name], fused[name]) for name in averaged)


def test_the_student_comes_nearer_to_the_ensemble(initial):
    grid, averaged = run(FedAvg(fraction_evaluate=0.0), initial)
    grid, fused = run(FedDF(network, INPUTS, Distiller(steps=150, batch_size=32), fraction_evaluate=0.0), initial)
    assert distance(fused, grid) < 0.5 * distance(averaged, grid)


def test_same_seed_same_bits(initial):
    def fused(seed):
        strategy = FedDF(network, INPUTS, Distiller(steps=20, batch_size=16), seed=seed, fraction_evaluate=0.0)
        return run(strategy, initial, rounds=2)[1]

    one, again, other = fused(1), fused(1), fused(2)
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_a_client_that_fails_is_left_out(initial):
    nodes = {10 + number: Node(client(number), {}, {}) for number in range(3)}
    nodes[11].app = ClientApp()
    strategy = FedDF(network, INPUTS, Distiller(steps=5, batch_size=16), fraction_evaluate=0.0)
    result = strategy.start(grid=InProcessGrid(nodes), initial_arrays=ArrayRecord(initial), num_rounds=1)
    assert result.arrays.keys() == initial.keys()


@pytest.mark.parametrize("inputs", [torch.zeros(0, 4), torch.zeros(4), torch.zeros(3, 4, dtype=torch.uint8)])
def test_bad_inputs_are_refused(inputs):
    with pytest.raises(DataError, match="FedDF takes a batch of float32 inputs"):
        FedDF(network, inputs)
