"""The robust mean against a loop over inputs in numpy, and what it is for."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedfuse.core.weights import NOTHING
from fedfuse.parts.scores import ByAgreement, Said
from tests.helpers import make_update

INPUTS, CLIENTS, CLASSES = 6, 8, 4


def said(tables):
    return [Said(make_update(NOTHING, client=k), table) for k, table in enumerate(tables)]


def tables(seed=0):
    random = torch.Generator().manual_seed(seed)
    return list(torch.randn(CLIENTS, INPUTS, CLASSES, generator=random).softmax(dim=2))


def by_loop(tables, removals):
    """One input at a time, with the covariance and its top eigenvector."""
    weights = np.zeros((len(tables), INPUTS))
    for j in range(INPUTS):
        rows = {k: table[j].double().numpy() for k, table in enumerate(tables)}
        for _ in range(removals):
            points = np.stack(list(rows.values()))
            apart = points - points.mean(0)
            direction = np.linalg.eigh(apart.T @ apart)[1][:, -1]
            farthest = int(np.argmax((apart @ direction) ** 2))
            del rows[list(rows)[farthest]]
        for k in rows:
            weights[k, j] = 1 / len(rows)
    return weights


@pytest.mark.parametrize(("epsilon", "removals"), [(0.13, 1), (0.3, 2), (0.45, 3)])
def test_is_the_filter(epsilon, removals):
    got = torch.stack(ByAgreement(epsilon=epsilon).weights(said(tables()))).squeeze(2).numpy()
    assert got == pytest.approx(by_loop(tables(), removals), abs=1e-6)


def test_without_suspicion_it_is_the_mean():
    weights = ByAgreement(epsilon=0).weights(said(tables()))
    assert torch.stack(weights).squeeze(2).numpy() == pytest.approx(np.full((CLIENTS, INPUTS), 1 / CLIENTS))


def test_a_liar_is_not_heard():
    honest = torch.tensor([0.7, 0.1, 0.1, 0.1]).expand(INPUTS, CLASSES)
    random = torch.Generator().manual_seed(1)
    crowd = [honest + 0.01 * torch.randn(INPUTS, CLASSES, generator=random) for _ in range(CLIENTS - 1)]
    liar = torch.tensor([0.0, 0.0, 0.0, 1.0]).expand(INPUTS, CLASSES)
    weights = ByAgreement(epsilon=0.2).weights(said([*crowd[:3], liar, *crowd[3:]]))
    assert (weights[3] == 0).all()


def test_the_order_of_clients_does_not_matter():
    order = [3, 1, 7, 0, 6, 2, 5, 4]
    plain = ByAgreement(epsilon=0.3).weights(said(tables()))
    shuffled = ByAgreement(epsilon=0.3).weights(said([tables()[k] for k in order]))
    for place, client in enumerate(order):
        torch.testing.assert_close(shuffled[place], plain[client])
