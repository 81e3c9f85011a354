"""RegMean: the layer that answers most like all models, by numpy's least squares."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.parts.merge import RegMean, TrainedModels
from fedfuse.parts.merge.gram import gram_matrices, regressed
from fedfuse.parts.merge.regmean import Regression
from fedfuse.testing import check_part
from tests.parts.merge.material import BASE, assert_near, moved, numbers, trained

RANDOM = np.random.default_rng(5)


def problem(models=3, rows=40, features=6, outputs=4, empty=()):
    inputs = [RANDOM.normal(size=(rows, features)) * RANDOM.uniform(0.5, 2, size=features) for _ in range(models)]
    for x in inputs:
        x[:, list(empty)] = 0
    return inputs, [RANDOM.normal(size=(outputs, features)) for _ in range(models)]


def solved(inputs, weights, alpha=1.0, shares=None):
    shares = shares or [1 / len(inputs)] * len(inputs)
    start = torch.tensor(np.average(weights, axis=0, weights=shares))
    regression = Regression(start, alpha)
    for x, weight, share in zip(inputs, weights, shares, strict=True):
        regression.add(torch.tensor(weight), torch.tensor(x.T @ x), share)
    return regression.weight().numpy()


def test_minimises_the_sum_of_squared_differences():
    inputs, weights = problem()
    x = np.concatenate(inputs)
    y = np.concatenate([own @ weight.T for own, weight in zip(inputs, weights, strict=True)])
    np.testing.assert_allclose(solved(inputs, weights), np.linalg.lstsq(x, y, rcond=None)[0].T, rtol=1e-9)


def test_shares_weigh_the_squares():
    inputs, weights = problem()
    shares = [0.5, 0.2, 0.3]
    x = np.concatenate([np.sqrt(share) * own for share, own in zip(shares, inputs, strict=True)])
    y = np.concatenate([np.sqrt(s) * own @ w.T for s, own, w in zip(shares, inputs, weights, strict=True)])
    found = solved(inputs, weights, shares=shares)
    np.testing.assert_allclose(found, np.linalg.lstsq(x, y, rcond=None)[0].T, rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.9, 0.1])
def test_alpha_scales_what_is_off_the_diagonal(alpha):
    inputs, weights = problem()
    grams = [x.T @ x * np.where(np.eye(x.shape[1]), 1, alpha) for x in inputs]
    total = sum(gram @ weight.T for gram, weight in zip(grams, weights, strict=True))
    np.testing.assert_allclose(solved(inputs, weights, alpha), np.linalg.solve(sum(grams), total).T, rtol=1e-9)


def test_alpha_zero_weighs_each_feature_by_its_size():
    inputs, weights = problem()
    sizes = np.stack([(x**2).sum(axis=0) for x in inputs])
    expected = (sizes[:, None, :] * np.stack(weights)).sum(axis=0) / sizes.sum(axis=0)
    np.testing.assert_allclose(solved(inputs, weights, alpha=0.0), expected, rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_features_that_no_input_has_are_averaged(alpha):
    inputs, weights = problem(empty=(0, 3))
    found = solved(inputs, weights, alpha)
    np.testing.assert_allclose(found[:, [0, 3]], np.mean(weights, axis=0)[:, [0, 3]], rtol=1e-12)
    others = [1, 2, 4, 5]
    small = solved([x[:, others] for x in inputs], [w[:, others] for w in weights], alpha)
    np.testing.assert_allclose(found[:, others], small, rtol=1e-9)


def test_fewer_inputs_than_features_still_answer_exactly_alike():
    """Two models with three inputs each, eight features: there is a layer that answers like both."""
    inputs, weights = problem(models=2, rows=3, features=8)
    found = solved(inputs, weights)
    for x, weight in zip(inputs, weights, strict=True):
        np.testing.assert_allclose(x @ found.T, x @ weight.T, atol=1e-8)


def test_gram_matrices_of_a_convolution_see_its_patches():
    """The same convolution as a product with unfolded patches, for a stride, a padding and a dilation."""
    torch.manual_seed(0)
    layer = nn.Conv2d(3, 5, (3, 2), stride=2, padding=1, dilation=(1, 2), bias=False)
    model, x = nn.Sequential(layer), torch.randn(4, 3, 9, 8)
    gram = gram_matrices(model, [x], 100)["0.weight"].numpy()
    # G says how large outputs are: sum of y_c^2 over all patches is w_c G w_c.
    squares = layer(x).square().sum(dim=(0, 2, 3)).detach().numpy()
    rows = layer.weight.detach().flatten(1).numpy()
    np.testing.assert_allclose(np.einsum("ci,ij,cj->c", rows, gram, rows), squares, rtol=1e-4)


def test_layers_that_are_averaged():
    layers = [nn.Conv2d(4, 4, 3, groups=2), nn.Conv2d(4, 4, 3, padding="same"), nn.Linear(9, 2), nn.LayerNorm(3)]
    plain = {"0.weight": nn.Linear(8, 2), "1.weight": nn.Conv2d(2, 2, 2)}
    assert list(regressed(nn.Sequential(*plain.values(), *layers), 8)) == list(plain)


def test_a_token_is_an_input_and_a_shared_layer_reads_twice():
    torch.manual_seed(0)
    layer = nn.Linear(4, 4)
    model, x = nn.Sequential(layer, layer), torch.randn(3, 5, 4)
    first, second = (t.detach().reshape(-1, 4).double().numpy() for t in (x, layer(x)))
    found = gram_matrices(model, [x], 8)["0.weight"].numpy()
    np.testing.assert_allclose(found, first.T @ first + second.T @ second, rtol=1e-5)


def test_networks_of_linear_layers_are_merged_layer_by_layer():
    """Weights by least squares on each model's own activations, biases by their mean."""

    def network(seed):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))

    models = [Weights.of(network(seed)) for seed in (1, 2)]
    holder, x = network(0), torch.randn(50, 4, generator=torch.Generator().manual_seed(3))

    def lend(weights):
        weights.load_into(holder)
        return holder

    def batches(_name, _most):
        return iter(x.split(16))

    material = TrainedModels(models, models[0], [0.5, 0.5], ["0", "1"], Key(0), lend, batches, lambda _: None)
    merged = RegMean(alpha=1.0).combine(material)
    read = [(x, torch.tanh(x @ m["0.weight"].T + m["0.bias"])) for m in models]
    for place, name in enumerate(["0.weight", "2.weight"]):
        rows = np.concatenate([own[place].double().numpy() for own in read])
        said = np.concatenate([(own[place] @ m[name].T).double().numpy() for own, m in zip(read, models, strict=True)])
        np.testing.assert_allclose(merged[name].numpy(), np.linalg.lstsq(rows, said, rcond=None)[0].T, atol=1e-4)
    np.testing.assert_allclose(merged["2.bias"].numpy(), ((models[0]["2.bias"] + models[1]["2.bias"]) / 2).numpy())


def test_too_many_features_make_it_the_mean():
    models = moved(3)
    merged = RegMean(most_features=1).combine(trained(models))
    assert_near(merged, np.mean([numbers(model) for model in models], axis=0))
    assert not merged.equals(RegMean().combine(trained(models)))


@pytest.mark.parametrize("alpha", [0.9, 1.0])
def test_one_model_alone_and_copies_are_itself(alpha):
    (model,) = moved(1)
    assert RegMean(alpha=alpha).combine(trained([model])).equals(model)
    assert RegMean(alpha=alpha).combine(trained([model] * 2)).equals(model)


def test_order_does_not_matter():
    models = moved(3)
    one, other = (RegMean().combine(trained(order)) for order in (models, models[::-1]))
    np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-5, atol=1e-7)
    assert not np.allclose(numbers(one), numbers(BASE))


def test_keeps_the_laws():
    check_part(RegMean(), workers=False)
