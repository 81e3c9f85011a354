"""Initial weights: the papers' laws, for every network that names one."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from fedfuse.core.randomness import Key
from fedfuse.models import ConvNet, ResNet, create


def layers_of(initialisation: str) -> tuple[list[nn.Conv2d], nn.Linear]:
    architecture = ResNet.model_validate({"arch": "resnet8", "initialisation": initialisation})
    model = create(architecture, (3, 8, 8), 10, Key(0))
    assert isinstance(model.classifier, nn.Linear)
    return [m for m in model.modules() if isinstance(m, nn.Conv2d)], model.classifier


def layers_of_convnet(initialisation: str | None) -> list[nn.Conv2d | nn.Linear]:
    model = create(ConvNet.model_validate({"initialisation": initialisation}), (3, 20, 20), 10, Key(0))
    return [m for m in model.modules() if isinstance(m, nn.Conv2d | nn.Linear)]


def test_he_is_normal_with_the_fan_out() -> None:
    convolutions, linear = layers_of("he")
    for conv in convolutions:
        wanted = math.sqrt(2 / (conv.kernel_size[0] ** 2 * conv.out_channels))
        # Five standard errors of a sample standard deviation.
        assert conv.weight.std().item() == pytest.approx(wanted, rel=5 / math.sqrt(2 * conv.weight.numel()))
    largest = max(convolutions, key=lambda conv: conv.weight.numel()).weight
    assert largest.abs().max() > 3 * largest.std()
    assert linear.weight.abs().max() <= 1 / math.sqrt(64)


def test_xavier_fills_its_interval_and_leaves_no_bias() -> None:
    convolutions, linear = layers_of("xavier")
    for layer in (*convolutions, linear, *layers_of_convnet("xavier")):
        outputs, inputs = layer.weight.shape[:2]
        receptive = math.prod(layer.weight.shape[2:])
        bound = math.sqrt(6 / (receptive * (inputs + outputs)))
        assert 0.95 * bound < layer.weight.abs().max() <= bound
        assert layer.bias is None or not layer.bias.any()


def test_a_convnet_is_as_torch_makes_it_unless_told_otherwise() -> None:
    with Key(0).default_generator():
        first = nn.Conv2d(3, 32, kernel_size=3)
    assert torch.equal(layers_of_convnet(None)[0].weight, first.weight)
    assert torch.equal(layers_of_convnet(None)[0].bias, first.bias)


def test_without_norm_the_convolutions_have_zero_biases() -> None:
    model = create(ResNet(arch="resnet8", norm="none"), (3, 8, 8), 10, Key(0))
    biases = [m.bias for m in model.modules() if isinstance(m, nn.Conv2d)]
    assert all(bias is not None and not bias.any() for bias in biases)
