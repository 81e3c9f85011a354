"""What members that know different classes say together: who does not know a class says nothing about it, not zero.

Member k gives p_k over its own classes C_k, which is taken as conditional: "if it is one of mine, then ...".

    probabilities:  q = argmin_q  sum_k w_k KL( p_k || q restricted to C_k and renormalised )
    logits:         t = argmin_t  min_b  sum_k sum_{c in C_k} w_k ( z_kc - t_c - b_k )^2,   q = softmax(t)

Where all know the same classes, these are the weighted means of probabilities and of logits. If all p_k are
conditionals of one p, both give p back, provided that the sets hang together: members that share classes link any class
to any other.

The first is convex in log q, and its dual has one unknown per member, not one per class: with N_c = sum_k w_k p_kc,

    min_u  sum_c N_c log sum_{k knows c} w_k exp(u_k) - sum_k w_k u_k,      q_c = N_c / sum_{k knows c} w_k exp(u_k).

Sets that do not hang together say nothing of each other (``LabelSets.groups``): ``voting.py`` compares them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from fedfuse.core.slices import slices

ROWS = 1024
"""Inputs at a time."""
NEWTON_STEPS = 200
CLOSE = 1e-10
"""A step of all unknowns by less than this is the last."""
LEAST = 1e-9
"""No member takes a class that it knows for less probable, or counts for less there: something has to link the sets."""


@dataclass(frozen=True)
class LabelSets:
    """For each member, where its classes lie in the common list of so many classes."""

    columns: tuple[Tensor, ...]
    classes: int

    @staticmethod
    def equal(members: int, classes: int) -> LabelSets:
        """All know all classes, in the common order."""
        return LabelSets(tuple(torch.arange(classes) for _ in range(members)), classes)

    @cached_property
    def are_equal(self) -> bool:
        """Whether everybody knows every class, in whatever order."""
        return all(len(own) == self.classes for own in self.columns)

    @cached_property
    def groups(self) -> list[list[int]]:
        """The members that hang together by classes which they share, in the order of their first members."""
        groups: list[tuple[set[int], list[int]]] = []
        for member, own in enumerate(self.columns):
            known = set(own.tolist())
            linked = [group for group in groups if not known.isdisjoint(group[0])]
            members = [earlier for _, others in linked for earlier in others]
            whole = known.union(*(classes for classes, _ in linked)), [*members, member]
            groups = [*(group for group in groups if group not in linked), whole]
        return sorted(sorted(members) for _, members in groups)

    def of(self, members: Sequence[int]) -> LabelSets:
        """Some of the members; the common list stays."""
        return LabelSets(tuple(self.columns[member] for member in members), self.classes)

    def own_labels(self, labels: Tensor) -> list[Tensor]:
        """Labels of the common list as each member numbers its own classes, -1 for those that it does not know."""
        own = []
        for columns in self.columns:
            places = torch.full((self.classes,), -1)
            places[columns] = torch.arange(len(columns))
            own.append(places[labels])
        return own

    def placed(self, member: int, said: Tensor) -> Tensor:
        """What a member that knows every class says, or a row of its weights, in the common order."""
        table = torch.empty_like(said)
        table[..., self.columns[member]] = said
        return table


def mean_of_probabilities(said: Sequence[Tensor], weights: Sequence[Tensor], sets: LabelSets) -> Tensor:
    """log q of members that hang together, from their probabilities; minus infinity for classes that nobody knows.

    A weight is a number, a column (a weight for each input), or has a column for each of the member's classes.
    """
    return _by_rows(_nearest_conditionals, [one.clamp_min(LEAST) for one in said], weights, sets)


def mean_of_logits(said: Sequence[Tensor], weights: Sequence[Tensor], sets: LabelSets) -> Tensor:
    """The same of their logits."""
    return _by_rows(_least_squares, said, weights, sets)


def _by_rows(
    combine: Callable[[Tensor, Tensor], Tensor], said: Sequence[Tensor], weights: Sequence[Tensor], sets: LabelSets
) -> Tensor:
    weights = [weight.expand_as(one) for one, weight in zip(said, weights, strict=True)]
    parts = []
    for some in slices(len(said[0]), ROWS):
        shape = (len(said[0][some]), len(said), sets.classes)
        table, counts = torch.zeros(shape, dtype=torch.float64), torch.zeros(shape, dtype=torch.float64)
        for member, own in enumerate(sets.columns):
            table[:, member, own] = said[member][some].double()
            counts[:, member, own] = weights[member][some].double().clamp_min(LEAST)
        parts.append(combine(table, counts).log_softmax(dim=1))
    return torch.cat(parts)


def _nearest_conditionals(said: Tensor, counts: Tensor) -> Tensor:
    """log N_c - log sum_k w_kc exp(u_k) at the dual's minimum, found for each input by itself, whatever its neighbours.

    Newton's method; of a step whose largest and smallest entry are d apart, log(1 + d) / d is taken, with which sums
    of log-sum-exp always decrease (Bach, 2010, Self-concordant analysis for logistic regression).
    """
    wins = counts * said
    of_class, of_member = wins.sum(dim=1), wins.sum(dim=2)
    offsets = torch.zeros_like(of_member)
    moving = torch.ones(len(said), 1, dtype=torch.bool)
    for _ in range(NEWTON_STEPS):
        shares = counts * offsets.exp().unsqueeze(2)
        shares /= shares.sum(dim=1, keepdim=True).clamp_min(math.ulp(0.0))
        expected = of_class.unsqueeze(1) * shares
        gradient = expected.sum(dim=2) - of_member
        step = _solved(torch.diag_embed(expected.sum(dim=2)) - expected @ shares.mT, gradient)
        apart = (step.amax(dim=1, keepdim=True) - step.amin(dim=1, keepdim=True)).clamp_min(1e-300)
        offsets = torch.where(moving, offsets - step * apart.log1p() / apart, offsets)
        moving = moving & (apart > CLOSE)
        if not moving.any():
            break
    log_q = of_class.log() - (counts * offsets.exp().unsqueeze(2)).sum(dim=1).log()
    return torch.where(of_class > 0, log_q, -torch.inf)


def _least_squares(said: Tensor, counts: Tensor) -> Tensor:
    """t, after the offsets b of the members were found from the normal equations without t."""
    shares = counts / counts.sum(dim=1, keepdim=True).clamp_min(math.ulp(0.0))
    middle = (shares * said).sum(dim=1, keepdim=True)
    offsets = _solved(torch.diag_embed(counts.sum(dim=2)) - counts @ shares.mT, (counts * (said - middle)).sum(dim=2))
    best = (shares * (said - offsets.unsqueeze(2))).sum(dim=1)
    return torch.where(counts.sum(dim=1) > 0, best, -torch.inf)


def _solved(matrix: Tensor, right: Tensor) -> Tensor:
    """The solution of sum zero: adding the same to all unknowns changes nothing, as the matrix has rows of sum zero."""
    scale = matrix.diagonal(dim1=1, dim2=2).mean(dim=1)[:, None, None].clamp_min(1e-300)
    solution: Tensor = torch.linalg.solve(matrix / scale + 1 / matrix.shape[1], right / scale.squeeze(2))
    return solution
