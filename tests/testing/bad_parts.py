"""Parts that break one law each."""

# ruff: noqa: ARG002

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import torch
from torch import nn

import fedfuse
from fedfuse.engines import LocalEngine

CALLS: Counter[str] = Counter()


class Added(fedfuse.Hooks):
    """Adds a number to the first gradient of every step."""

    def __init__(self, client, number):
        self.client, self.number = client, number

    def on_gradient(self):
        next(iter(self.client.model.parameters())).grad.add_(self.number)


class GlobalRandomness(fedfuse.Objective):
    def begin(self, client):
        return Added(client, torch.rand(()))


class Forgetful(fedfuse.Objective):
    """Knows the rounds that it has seen itself, and begins anew in round 1."""

    def begin(self, client):
        if client.task.round == 1:
            CALLS.clear()
        CALLS["rounds", client.task.round] = 1
        return Added(client, 0.1 * len(CALLS))


class FirstComeFirstServed(fedfuse.Objective):
    """Counts who was there before in this round."""

    def begin(self, client):
        before = CALLS[client.task.round]
        CALLS.clear()
        CALLS[client.task.round] = before + 1
        return Added(client, 0.1 * before)


class AtHome(fedfuse.Objective):
    """Depends on the process."""

    def begin(self, client):
        return Added(client, os.getpid() / 1e5)


class Talkative(fedfuse.Objective):
    """Sends what it has not announced."""

    def begin(self, client):
        hooks = Added(client, 0)
        hooks.extras = lambda: {"secret": torch.zeros(1)}
        return hooks


class OneSize(Talkative):
    """Announces the size of a single architecture."""

    def begin(self, client):
        hooks = Added(client, 0)
        hooks.extras = lambda: {"move": client.start.parameters}
        return hooks

    def update_spec(self, bank, prototype):
        return {"move": (bank.layout(bank.prototypes[0]).parameter_count,)}


class KeepsNumbers(fedfuse.Objective):
    def begin(self, client):
        hooks = Added(client, 0)
        hooks.state = lambda: {"visits": 1}
        return hooks


class KeepsGraphs(fedfuse.Objective):
    def begin(self, client):
        hooks = Added(client, 0)
        hooks.state = lambda: {"first": next(iter(client.model.parameters())).reshape(-1)}
        return hooks


class Infinite(fedfuse.Merge):
    def merge(self, view, prototype, updates):
        return fedfuse.Merged(updates[0].weights * float("inf"))


class Constant(fedfuse.Merge):
    """Nothing is learnt, so no seed matters."""

    def merge(self, view, prototype, updates):
        return fedfuse.Merged(0.0 * updates[0].weights)


class Twice(fedfuse.Partition):
    def assign(self, labels, classes, key, owners=None):
        return [np.arange(len(labels)), np.arange(40)]


class Unsorted(fedfuse.Partition):
    def assign(self, labels, classes, key, owners=None):
        order = key.numpy().permutation(len(labels))
        return [order[:40], order[40:]]


class Failing(fedfuse.Metric):
    def compute(self, predictions):
        raise ZeroDivisionError("no examples")


class Losing(fedfuse.EngineSettings):
    """Loses the last client of every round."""

    def open(self, clients, log):
        engine = LocalEngine(clients)
        whole = engine.train
        engine.train = lambda tasks, states: whole(tasks[:-1], states)
        return engine


class Dreaming(fedfuse.Architecture):
    """Cannot be made again with the same weights: it draws a constant of its own."""

    def build(self, input_shape, classes):
        layers = nn.Sequential(nn.Flatten(), nn.Linear(input_shape[-1] * input_shape[-2], 4), Offset())
        return fedfuse.LayeredClassifier(layers, 4, classes)


class Offset(nn.Module):
    def __init__(self):
        super().__init__()
        CALLS["offsets"] += 1
        self.offset = float(CALLS["offsets"])

    def forward(self, x):
        return x + self.offset
