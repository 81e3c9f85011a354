"""Fisher merging: the diagonal against a linear model's own formula, and the weighted mean."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fedfuse.parts.merge import Fisher
from fedfuse.parts.merge.diagonal_fisher import diagonal_fisher
from fedfuse.testing import check_part
from tests.parts.merge.material import BANK, assert_averaged_statistics, assert_near, moved, numbers, trained


def linear(seed=0):
    torch.manual_seed(seed)
    return nn.Linear(4, 3).double()


def inputs(number=30):
    return torch.randn(number, 4, generator=torch.Generator().manual_seed(8)).double()


def of_softmax_regression(model, x):
    """E_y (e_y - p)_c^2 = p_c (1 - p_c), times x^2 for a weight."""
    logits = x.numpy() @ model.weight.detach().numpy().T + model.bias.detach().numpy()
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    variance = p * (1 - p)
    return variance.T @ x.numpy() ** 2 / len(x), variance.mean(axis=0)


def test_exact_is_the_closed_form_of_softmax_regression():
    model, x = linear(), inputs()
    found = diagonal_fisher(model, x.split(7), "exact", torch.Generator())
    weight, bias = of_softmax_regression(model, x)
    np.testing.assert_allclose(found["weight"].numpy(), weight, rtol=1e-10)
    np.testing.assert_allclose(found["bias"].numpy(), bias, rtol=1e-10)


def test_sampled_comes_near_exact():
    model, x = linear(), inputs(10)
    many = [diagonal_fisher(model, [x], "sampled", torch.Generator().manual_seed(s))["weight"] for s in range(100)]
    exact, _ = of_softmax_regression(model, x)
    spread = torch.stack(many).std(dim=0).numpy() / np.sqrt(len(many))
    assert (np.abs(torch.stack(many).mean(dim=0).numpy() - exact) < 5 * spread).all()


def test_what_is_frozen_or_never_used_counts_nothing():
    model = nn.Module()
    model.used, model.unused, model.frozen = linear(), linear(1), nn.Parameter(torch.ones(2), requires_grad=False)
    model.forward = lambda x: model.used(x)
    found = diagonal_fisher(model, [inputs(3)], "exact", torch.Generator())
    assert float(found["used.weight"].min()) > 0
    assert not found["unused.weight"].any()
    assert not found["frozen"].any()


def test_a_network_is_left_as_it_was():
    (model,) = moved(1)
    network = BANK.lend("norm", model).train()
    diagonal_fisher(network, trained([model]).batches("0", 5), "exact", torch.Generator())
    assert network.training
    assert type(model).of(network).equals(model)
    assert all(parameter.grad is None for parameter in network.parameters())


@pytest.mark.parametrize("labels", ["exact", "sampled"])
def test_is_the_weighted_mean(labels):
    models, part = moved(3), Fisher(labels=labels, floor=1e-9)
    material = trained(models, [1.0, 2.0, 5.0])
    importance = [part.importance(material, m, n).numpy() for m, n in zip(models, material.names, strict=True)]
    weights = np.array([1.0, 2.0, 5.0])[:, None] * np.stack(importance)
    expected = (weights * np.stack([numbers(model) for model in models])).sum(axis=0) / weights.sum(axis=0)
    merged = part.combine(material)
    assert_near(merged, expected)
    assert importance[0].std() > 0
    assert float(np.abs(expected - np.mean([numbers(m) for m in models], axis=0)).max()) > 1e-3


def test_equal_information_is_the_mean():
    """A floor above all information makes it equal."""
    models = moved(3)
    merged = Fisher(floor=1e6).combine(trained(models))
    assert_near(merged, np.mean([numbers(model) for model in models], axis=0))
    assert_averaged_statistics(merged, models)


def test_one_model_alone_and_copies_are_itself():
    (model,) = moved(1)
    assert Fisher().combine(trained([model])).equals(model)
    assert Fisher().combine(trained([model] * 2)).equals(model)


def test_order_does_not_matter():
    models = moved(3)
    assert_near(Fisher().combine(trained(models)), numbers(Fisher().combine(trained(models[::-1]))))


def test_keeps_the_laws():
    check_part(Fisher(labels="sampled", inputs=8), workers=False)
