"""TIES against numpy by hand and against peft, and its limits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedfuse.core.weights import Layout, Weights
from fedfuse.parts.merge import Ties
from fedfuse.testing import check_part
from tests.parts.merge.material import BASE, assert_averaged_statistics, assert_near, moved, numbers, pefts, trained

PARAMETERS = BASE.layout.parameter_count


def by_hand(vectors, density, groups, counts=None):
    """Trim, elect, merge, one number at a time."""
    weights = np.ones(len(vectors)) if counts is None else np.asarray(counts)
    trimmed = np.zeros_like(vectors)
    for own, vector in zip(trimmed, vectors, strict=True):
        for group in groups:
            largest = np.sort(np.abs(vector[group]))[::-1][: round(density * len(vector[group]))]
            kept = np.abs(vector[group]) >= largest[-1] if len(largest) else np.zeros(len(vector[group]), bool)
            own[group] = np.where(kept, vector[group], 0)
    merged = np.zeros(vectors.shape[1])
    for place, column in enumerate(trimmed.T):
        agrees = np.sign(column) == np.sign((weights * column).sum())
        agrees &= column != 0
        if agrees.any():
            merged[place] = np.average(column[agrees], weights=weights[agrees])
    return merged


def vectors_of(models):
    return np.stack([numbers(model) - numbers(BASE) for model in models])


@pytest.mark.parametrize("density", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_is_the_formula(density, scale):
    models = moved(4)
    merged = Ties(density=density, scale=scale).combine(trained(models))
    assert_near(merged, numbers(BASE) + scale * by_hand(vectors_of(models), density, [slice(None)]))
    assert_averaged_statistics(merged, models)


def test_trims_tensor_by_tensor():
    models = moved(3)
    entries = BASE.layout.entries[: len(BASE.layout.parameters)]
    groups = [slice(entry.offset, entry.offset + entry.size) for entry in entries]
    expected = numbers(BASE) + by_hand(vectors_of(models), 0.3, groups)
    merged = Ties(density=0.3, trim="tensor").combine(trained(models))
    assert_near(merged, expected)
    assert not merged.equals(Ties(density=0.3).combine(trained(models)))


def test_weights_of_examples():
    models = moved(3)
    expected = by_hand(vectors_of(models), 0.5, [slice(None)], counts=[1, 2, 7])
    assert_near(Ties(density=0.5).combine(trained(models, [1.0, 2.0, 7.0])), numbers(BASE) + expected)


@pytest.mark.parametrize("density", [0.35, 0.7])
def test_is_pefts(density):
    models = moved(3)
    vectors = list(torch.from_numpy(vectors_of(models)))
    theirs = pefts().ties(vectors, torch.ones(3, dtype=torch.float64), density)
    assert int(density * PARAMETERS) == round(density * PARAMETERS), "peft would keep one number less"
    assert_near(Ties(density=density).combine(trained(models)), numbers(BASE) + theirs.numpy())


def test_no_sign_is_elected_where_moves_cancel_out():
    layout = Layout((("w", (4,)),), ())
    base = Weights(torch.tensor([1.0, 1.0, 1.0, 1.0]), layout)
    one = Weights(torch.tensor([3.0, 3.0, 1.0, 2.0]), layout)
    other = Weights(torch.tensor([-1.0, 0.0, 1.0, 2.0]), layout)
    merged = Ties(density=1.0).combine(trained([one, other], base=base))
    assert merged.flat.tolist() == [1.0, 3.0, 1.0, 2.0]


def test_numbers_of_the_same_size_are_all_kept():
    layout = Layout((("w", (5,)),), ())
    base = Weights(torch.zeros(5), layout)
    model = Weights(torch.tensor([2.0, -2.0, 2.0, 1.0, 0.0]), layout)
    assert Ties(density=0.4).combine(trained([model], base=base)).flat.tolist() == [2.0, -2.0, 2.0, 0.0, 0.0]


def test_one_model_alone_is_itself():
    (model,) = moved(1)
    assert Ties(density=1.0).combine(trained([model])).equals(model)


def test_copies_of_a_model_are_that_model_trimmed():
    (model,) = moved(1)
    assert_near(Ties().combine(trained([model] * 3)), numbers(Ties().combine(trained([model]))))


def test_scale_zero_is_the_base():
    assert torch.equal(Ties(scale=0.0).combine(trained(moved(3))).parameters, BASE.parameters)


def test_order_does_not_matter():
    models = moved(4)
    assert_near(Ties().combine(trained(models)), numbers(Ties().combine(trained(models[::-1]))))


def test_keeps_the_laws():
    check_part(Ties(), workers=False)
