"""Ordinary Flower apps: plain PyTorch clients that know nothing of fedfuse."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from torch import nn

from tests.flower.grid import InProcessGrid, Node
from tests.helpers import make_examples

INPUTS = make_examples(120, seed=77).inputs
TEST = make_examples(200, seed=78)


def network():
    return nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))


def small():
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))


class Large(nn.Module):
    """A network with branches, tied layers and a buffer that is not saved."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Linear(4, 12), nn.BatchNorm1d(12)
        self.left = nn.Linear(12, 12)
        self.right = nn.Linear(12, 12)
        self.right.weight = self.left.weight
        self.last = nn.Linear(12, 3)
        self.register_buffer("scale", torch.tensor([2.0]), persistent=False)

    def forward(self, x):
        h = F.relu(self.norm(self.first(x)))
        return self.last(F.relu(self.left(h)) + self.scale * torch.tanh(self.right(h)))


def examples_of(number):
    """A client's own: two of three classes."""
    examples = make_examples(90, seed=number)
    return examples.select((examples.labels != number % 3).nonzero().squeeze(1))


def client(number, make=network, says=None):
    """A client with examples of its own; ``says`` is the model that it runs, if it is asked."""
    app, mine = ClientApp(), examples_of(number)
    inputs, labels = mine.inputs, mine.labels

    @app.train()
    def train(message, context):  # noqa: ARG001
        model = make()
        model.load_state_dict(message.content["arrays"].to_torch_state_dict())
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(20):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        metrics = MetricRecord({"num-examples": len(labels)})
        content = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
        return Message(content, reply_to=message)

    @app.evaluate()
    def evaluate(message, context):  # noqa: ARG001
        model = make()
        model.load_state_dict(message.content["arrays"].to_torch_state_dict())
        right = float((model.eval()(inputs).argmax(1) == labels).float().mean())
        metrics = MetricRecord({"num-examples": len(labels), "accuracy": right})
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    if says is not None:

        @app.query()
        def query(message, context):  # noqa: ARG001
            return Message(RecordDict({"config": ConfigRecord({"model": says})}), reply_to=message)

    return app


def grid_of(*apps):
    return InProcessGrid({10 + number: Node(app, {}, {}) for number, app in enumerate(apps)})


def run(strategy, initial, rounds=1, grid=None):
    grid = grid or grid_of(*map(client, range(3)))
    result = strategy.start(grid=grid, initial_arrays=ArrayRecord(initial), num_rounds=rounds)
    return grid, result.arrays.to_torch_state_dict()


def accuracy(network, state, examples=TEST):
    network.load_state_dict(state)
    return float((network.eval()(examples.inputs).argmax(1) == examples.labels).float().mean())
