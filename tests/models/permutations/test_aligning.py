"""Weight matching: planted orders are found again, small cases are solved by trying everything, averages are better."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights, mean
from fedfuse.models.permutations import align, units_of
from tests.models.permutations.test_units import answer, of_zoo


def planted(network, example, seed):
    units, random = units_of(network, example), Key(seed).torch()
    orders = [torch.randperm(group.size, generator=random) for group in units.groups]
    return units.reordered(Weights.of(network), orders)


@pytest.mark.parametrize(
    "name", ["mlp", "convnet", "resnet20", "shufflenetv2", "mobilenetv2", "resnet8", "text_transformer"]
)
def test_a_network_and_its_permuted_self_are_the_network(name):
    network, example = of_zoo(name)
    own = Weights.of(network)
    others = [planted(network, example, seed) for seed in (1, 2)]
    assert not torch.equal(torch.cat([others[0][name].reshape(-1) for name in own]), own.flat)
    for other in align(network, example, own, others, Key(0), iterations=1):
        assert other.equals(own)


def two_layers(seed, hidden=5):
    with Key(seed).default_generator():
        return nn.Sequential(nn.Linear(3, hidden), nn.ReLU(), nn.Linear(hidden, 2))


def test_one_hidden_layer_is_solved_as_by_trying_everything():
    one, other = (Weights.of(two_layers(seed)) for seed in (1, 2))
    (found,) = align(two_layers(0), torch.rand(2, 3), one, [other], Key(0))

    def arrays(weights, order):
        first, bias, last, end = (weights[name].double().numpy() for name in weights)
        return np.concatenate([first[order].ravel(), bias[order], last[:, order].ravel(), end])

    own = arrays(one, range(5))
    best = max(permutations(range(5)), key=lambda order: float(own @ arrays(other, list(order))))
    np.testing.assert_array_equal(arrays(found, range(5)), arrays(other, list(best)))


def test_several_are_matched_with_each_other():
    """Each stays a network that computes what it did, and together they are nearer than one by one."""
    network, example = of_zoo("mlp")
    like = [Weights.of(of_zoo("mlp")[0])]
    for seed in range(4):
        noise = torch.randn(like[0].flat.shape, generator=Key(seed).torch())
        like.append(Weights(noise * like[0].flat.std(), like[0].layout))
    reference, *others = like

    def distance(networks):
        stacked = torch.stack([reference.flat, *(n.flat for n in networks)]).double()
        return float((stacked - stacked.mean(dim=0)).square().sum())

    once, again = (align(network, example, reference, others, Key(5), iterations=n) for n in (0, 10))
    assert distance(again) < distance(once) < distance(others)
    for before, after in zip(others, again, strict=True):
        outputs = []
        for weights in (before, after):
            weights.load_into(network.eval())
            outputs.append(answer(network.double(), example))
            network.float()
        torch.testing.assert_close(*outputs, rtol=1e-6, atol=1e-9)


def trained(seed, inputs, labels):
    with Key(seed).default_generator():
        network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
        optimizer = torch.optim.Adam(network.parameters(), lr=0.003)
        for _ in range(60):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(inputs), labels).backward()
            optimizer.step()
    return network


def test_the_average_of_networks_trained_apart_is_better_when_they_are_aligned():
    images, numbers = load_digits(return_X_y=True)
    inputs, labels = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(numbers)
    train, test = slice(0, 1200), slice(1200, None)
    networks = [trained(seed, inputs[train], labels[train]) for seed in (1, 2, 3)]
    first, *others = weights = list(map(Weights.of, networks))
    aligned = align(networks[0], inputs[:2], first, others, Key(0))

    def accuracy(weights):
        weights.load_into(networks[0])
        with torch.no_grad():
            return float((networks[0](inputs[test]).argmax(1) == labels[test]).float().mean())

    plain, better = (accuracy(mean([first, *rest], [1, 1, 1])) for rest in (others, aligned))
    assert min(map(accuracy, weights)) > 0.85
    assert better > plain + 0.1


def test_the_same_key_gives_the_same_bits():
    network, example = of_zoo("cnn_deep")
    others = [
        {name: tensor + 0.3 * torch.randn(tensor.shape, generator=Key(seed).torch()) for name, tensor in own.items()}
        for seed, own in enumerate(planted(network, example, seed) for seed in (1, 2, 3))
    ]
    first, second = (align(network, example, Weights.of(network), others, Key(4)) for _ in range(2))
    assert all(map(Weights.equals, first, second))


@pytest.mark.parametrize("type_", [torch.float16, torch.bfloat16, torch.float64])
def test_types_are_kept(type_):
    network, example = of_zoo("mlp")
    other = {name: tensor.to(type_) for name, tensor in planted(network, example, 1).items()}
    (found,) = align(network, example, Weights.of(network), [other], Key(0))
    assert found.flat.dtype == type_
    assert torch.equal(found.flat, Weights.of(network).flat.to(type_))


def broken(change):
    weights = dict(Weights.of(two_layers(1)))
    change(weights)
    return weights


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (broken(lambda w: w.pop("0.bias")), "'0.bias' of shape .* network 1 to be aligned has none"),
        (broken(lambda w: w.update({"2.bias": torch.zeros(3)})), r"network 1 to be aligned has one of shape \(3,\)"),
        (broken(lambda w: w["0.bias"].fill_(torch.nan)), "'0.bias' of network 1 to be aligned is not finite"),
    ],
)
def test_weights_of_another_network_are_refused(other, words):
    network = two_layers(0)
    with pytest.raises(DataError, match=words):
        align(network, torch.rand(2, 3), Weights.of(network), [other], Key(0))


def test_a_network_that_cannot_be_followed_is_refused():
    network = nn.Sequential(nn.Linear(3, 4))
    with pytest.raises(ConfigError, match="no hidden units"):
        align(network, torch.rand(2, 3), Weights.of(network), [Weights.of(network)], Key(0))
