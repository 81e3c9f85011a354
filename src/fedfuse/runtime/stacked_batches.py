"""Batches of several clients at a time, each filled up to the same length with examples that do not count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from fedfuse.data import Examples, Transform
from fedfuse.runtime.batch_loader import READY_BYTES, BatchLoader
from fedfuse.runtime.compute import Compute
from fedfuse.runtime.twins import Stack


class Learner(Protocol):
    """A client, as far as its batches go."""

    @property
    def examples(self) -> Examples: ...
    @property
    def transform(self) -> Transform: ...


class Visit(Protocol):
    """A step of one client: its examples, and what decides how they are seen."""

    @property
    def where(self) -> Tensor: ...
    @property
    def views(self) -> torch.Generator | None: ...


@dataclass(frozen=True)
class StackedBatch:
    """One step of all clients.

    ``inputs`` are length x clients x ..., ``labels`` and ``shares`` (what an example counts in its client's mean, 0 for
    one that fills up) clients x length; ``lengths`` says how many examples of each client count.
    """

    inputs: Tensor
    labels: Tensor
    shares: Tensor
    lengths: Sequence[int]


class StackedBatches(Protocol):
    """The steps of a stack."""

    def batch(self, step: int) -> StackedBatch: ...


def stacked_batches(
    compute: Compute, stack: Stack, clients: Sequence[Learner], visits: Sequence[Sequence[Visit]]
) -> StackedBatches:
    """The steps of the clients' visits, side by side."""
    plan = _Plan(compute, stack, visits)
    size = sum(4 * client.examples.inputs.numel() for client in clients)
    is_small = size <= READY_BYTES and not clients[0].transform.augments
    return _Ready(plan, clients) if is_small else _Loaded(plan, clients)


class _Plan:
    """Who does what in which step, how long everybody's batches are, and what each example counts."""

    def __init__(self, compute: Compute, stack: Stack, visits: Sequence[Sequence[Visit]]) -> None:
        self.compute, self.size, self.length, self.visits = compute, stack.twin.size, stack.length, visits
        steps = range(max(map(len, visits)))
        self.lengths = [[len(own[step].where) if step < len(own) else 0 for own in visits] for step in steps]
        lengths = torch.tensor([row + [0] * (self.size - len(row)) for row in self.lengths]).unsqueeze(2)
        self.shares = ((torch.arange(self.length) < lengths) / lengths.clamp_min(1)).to(compute.device)


class _Ready:
    """All examples normalised once, one client's after another, and one more that fills up."""

    def __init__(self, plan: _Plan, clients: Sequence[Learner]) -> None:
        self.plan = plan
        inputs = clients[0].transform(torch.cat([client.examples.inputs for client in clients]))
        labels = torch.cat([client.examples.labels for client in clients])
        self.inputs = torch.cat([inputs, torch.zeros_like(inputs[:1])]).to(plan.compute.device)
        self.labels = torch.cat([labels, torch.zeros_like(labels[:1])]).to(plan.compute.device)
        self.rows = self._rows([len(client.examples) for client in clients])

    def _rows(self, sizes: Sequence[int]) -> Tensor:
        """Of each step, place and example: where it is."""
        plan, offset = self.plan, 0
        rows = torch.full((len(plan.lengths), plan.size, plan.length), sum(sizes))
        for place, (own, size) in enumerate(zip(plan.visits, sizes, strict=True)):
            for step, visit in enumerate(own):
                rows[step, place, : len(visit.where)] = visit.where + offset
            offset += size
        return rows

    def batch(self, step: int) -> StackedBatch:
        rows = self.rows[step]
        return StackedBatch(self.inputs[rows.T], self.labels[rows], self.plan.shares[step], self.plan.lengths[step])


class _Loaded:
    """Examples that are normalised, and perhaps augmented, when it is their turn."""

    def __init__(self, plan: _Plan, clients: Sequence[Learner]) -> None:
        self.plan = plan
        self.loaders = [BatchLoader(client.examples, client.transform, plan.compute) for client in clients]
        self.shape = clients[0].examples.shape

    def batch(self, step: int) -> StackedBatch:
        plan, device = self.plan, self.plan.compute.device
        inputs = torch.zeros(plan.length, plan.size, *self.shape, device=device)
        labels = torch.zeros(plan.size, plan.length, dtype=torch.long, device=device)
        for place, length in enumerate(plan.lengths[step]):
            if length:
                visit = plan.visits[place][step]
                own = self.loaders[place].batch(visit.where, visit.views)
                inputs[:length, place], labels[place, :length] = own
        return StackedBatch(inputs, labels, plan.shares[step], plan.lengths[step])
