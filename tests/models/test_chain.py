"""Networks as chains: the order, the blocks behind a Flatten, and who is refused."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.models import Cnn, CnnDeep, ConvNet, Mlp, ResNet, create
from fedfuse.models.chain import chain
from fedfuse.models.classifier import LayeredClassifier
from tests.helpers import TinyNorm


def links(architecture, shape):
    return [(link.name, link.kind, link.block) for link in chain(create(architecture, shape, 10, Key(0)))]


@pytest.mark.parametrize(
    ("architecture", "shape", "expected"),
    [
        (Mlp(hidden=()), (2, 3), [("classifier", "linear", 1)]),
        (
            Mlp(hidden=(7, 5)),
            (2, 3),
            [("layers.1", "linear", 1), ("layers.3", "linear", 1), ("classifier", "linear", 1)],
        ),
        (Cnn(arch="cnn2"), (1, 8, 12), [("layers.0", "conv2d", 1), ("classifier", "linear", 6)]),
        (
            CnnDeep(),
            (1, 8, 12),
            [("layers.0", "conv2d", 1), ("layers.3", "conv2d", 1), ("classifier", "linear", 6)],
        ),
        (
            ConvNet(extra_layers=1),
            (3, 22, 22),
            [
                ("layers.0", "conv2d", 1),
                ("layers.3", "conv2d", 1),
                ("layers.6", "conv2d", 1),
                ("layers.8", "conv2d", 1),
                ("layers.11", "linear", 4),
                ("classifier", "linear", 1),
            ],
        ),
        (
            Cnn(arch="cnn1", projection_head=3),
            (1, 8, 8),
            [
                ("body.layers.0", "conv2d", 1),
                ("head.0", "linear", 4),
                ("head.2", "linear", 1),
                ("classifier", "linear", 1),
            ],
        ),
    ],
    ids=["no hidden layer", "mlp", "cnn", "deep", "convnet", "head"],
)
def test_order_and_blocks(architecture, shape, expected):
    assert links(architecture, shape) == expected


@pytest.mark.parametrize("architecture", [Mlp(hidden=(7, 5)), ConvNet(), CnnDeep(projection_head=4)])
def test_all_parameters_are_in_the_chain(architecture):
    model = create(architecture, (3, 22, 22), 10, Key(0))
    names = [name for link in chain(model) for name in (link.weight, link.bias)]
    assert names == [name for name, _ in model.named_parameters()]


def test_a_block_is_what_one_channel_reaches():
    """Only the inputs of a channel's block change when that channel does."""
    model = create(CnnDeep(channels=(2, 5)), (1, 8, 8), 3, Key(0))
    x = torch.randn(4, 1, 8, 8, generator=Key(1).torch())
    block = chain(model)[-1].block
    before = model.features(x)
    with torch.no_grad():
        model.layers[3].bias[3] += 5
    moved = (model.features(x) != before).any(dim=0).nonzero().squeeze(1)
    assert moved.tolist() == list(range(3 * block, 4 * block))


def test_a_layer_without_bias():
    (link, _) = chain(LayeredClassifier(nn.Sequential(nn.Linear(3, 4, bias=False)), 4, 2))
    assert (link.weight, link.bias) == ("layers.0.weight", None)


def layered(*layers, size=6):
    return LayeredClassifier(nn.Sequential(*layers), size, 2)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (create(ResNet(arch="resnet8"), (3, 8, 8), 10, Key(0)), "do not simply follow each other"),
        (create(ResNet(arch="resnet8", projection_head=4), (3, 8, 8), 10, Key(0)), "do not simply follow each other"),
        (TinyNorm().build((4,), 3), "layers.2 is a BatchNorm1d"),
        (layered(nn.Conv2d(2, 6, 1), nn.GroupNorm(2, 6), nn.Flatten()), "layers.1 is a GroupNorm"),
        (layered(nn.Linear(6, 6), nn.Softmax(dim=1)), "layers.1 is a Softmax"),
        (layered(nn.Conv2d(2, 6, 1, groups=2), nn.Flatten()), "layers.0 is a convolution in 2 groups"),
        (layered(nn.Conv2d(2, 6, 1)), "the 6 inputs of classifier are not the 6 neurons of layers.0"),
        (layered(nn.Conv2d(2, 4, 1), nn.Flatten()), "the 6 inputs of classifier are not the 4 neurons of layers.0"),
        (layered(nn.Linear(2, 6), nn.Conv2d(6, 6, 1), nn.Flatten()), "the 6 inputs of layers.1 are not the 6 neurons"),
    ],
    ids=["resnet", "resnet with head", "batch", "group", "mixing", "grouped", "not flat", "uneven", "backwards"],
)
def test_who_is_refused(model, reason):
    with pytest.raises(ConfigError, match="no chain of linear layers and convolutions: ") as refusal:
        chain(model)
    assert reason in str(refusal.value)
