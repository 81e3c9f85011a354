"""The blocks of the deeper networks against slow, independent definitions, and the layers of VGG-9 in a row."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from fedfuse.core.randomness import Key
from fedfuse.models import DeepResNet, Vgg9, create
from fedfuse.models.mobilenet import InvertedResidual
from fedfuse.models.residual import Bottleneck
from fedfuse.models.shufflenet import BasicUnit, DownUnit, shuffled


def test_shuffling_deals_the_channels_in_turn() -> None:
    left, right = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 4, 5)
    result = shuffled(left, right)
    for channel in range(3):
        assert torch.equal(result[:, 2 * channel], left[:, channel])
        assert torch.equal(result[:, 2 * channel + 1], right[:, channel])


def test_a_basic_unit_carries_the_first_half() -> None:
    x = torch.randn(2, 6, 4, 4)
    unit = BasicUnit(6)
    assert torch.equal(unit(x)[:, 0::2], x[:, :3])
    assert torch.equal(unit(x)[:, 1::2], unit.work(x[:, 3:]))


def test_a_down_unit_halves_the_resolution() -> None:
    assert DownUnit(6, 10)(torch.randn(2, 6, 8, 9)).shape == (2, 10, 4, 5)


@pytest.mark.parametrize(
    ("inputs", "outputs", "stride", "carries"), [(4, 4, 1, True), (4, 4, 2, False), (4, 6, 1, False)]
)
def test_an_inverted_residual_adds_its_input_where_it_fits(
    inputs: int, outputs: int, stride: int, carries: bool
) -> None:
    block = InvertedResidual(inputs, outputs, 6, stride).eval()
    assert isinstance(block.layers[-1], nn.BatchNorm2d)
    nn.init.zeros_(block.layers[-2].weight)
    x = torch.randn(2, inputs, 6, 6)
    assert torch.equal(block(x), x if carries else torch.zeros(2, outputs, 6 // stride, 6 // stride))


def test_a_bottleneck_whose_last_convolution_is_zero_is_its_shortcut() -> None:
    block = Bottleneck(8, 2, 1, lambda channels: nn.BatchNorm2d(channels))
    nn.init.zeros_(block.conv3.weight)
    x = torch.randn(2, 8, 5, 5)
    assert torch.equal(block(x), x.relu())
    assert block.conv1.weight.shape == (2, 8, 1, 1)
    assert block.conv2.weight.shape == (2, 2, 3, 3)


@pytest.mark.parametrize(("arch", "blocks"), [("resnet18", [2, 2, 2, 2]), ("resnet50", [3, 4, 6, 3])])
def test_stages_of_the_deep_resnets(arch: str, blocks: list[int]) -> None:
    model = create(DeepResNet.model_validate({"arch": arch, "width": 4}), (3, 32, 32), 10, Key(0))
    sizes = []
    for layer in model.modules():
        if type(layer).__name__ in ("BasicBlock", "Bottleneck"):
            layer.register_forward_hook(lambda _module, _inputs, output: sizes.append(tuple(output.shape[1:])))
    model(torch.zeros(2, 3, 32, 32))
    widest = 4 if arch == "resnet50" else 1
    assert sizes == [
        (widest * 4 * 2**stage, 32 // 2**stage, 32 // 2**stage)
        for stage, count in enumerate(blocks)
        for _ in range(count)
    ]


def test_the_large_stem_leaves_a_quarter_of_each_side() -> None:
    model = create(DeepResNet(arch="resnet18", width=4, stem="large"), (3, 32, 32), 10, Key(0))
    assert model.layers[:4](torch.zeros(2, 3, 32, 32)).shape == (2, 4, 8, 8)


def test_dropout_works_on_the_features_in_training_only() -> None:
    plain, dropping = (
        create(DeepResNet(arch="resnet18", width=8, dropout=dropout), (1, 8, 8), 3, Key(0)) for dropout in (0.0, 0.5)
    )
    x = torch.randn(4, 1, 8, 8, generator=Key(1).torch())
    with Key(2).default_generator():
        kept = dropping.train().features(x)
    doubled = kept.eq(2 * plain.train().features(x))
    assert (doubled | kept.eq(0)).all()
    assert 0 < doubled.float().mean() < 1
    dropping.load_state_dict(plain.state_dict())
    assert torch.equal(dropping.eval().features(x), plain.eval().features(x))


def test_groups_of_fedgkds_resnet50() -> None:
    model = create(DeepResNet(arch="resnet50", norm="group", width=16), (3, 8, 8), 10, Key(0))
    norms = [m for m in model.modules() if isinstance(m, nn.GroupNorm)]
    assert len(norms) == 53
    assert all(layer.num_groups == layer.num_channels // 16 for layer in norms)
    with pytest.raises(ValidationError, match="8 channels cannot be split into groups of 16"):
        DeepResNet(arch="resnet50", norm="group", width=8)


def layer_names(architecture: Vgg9) -> list[str]:
    model = create(architecture, (3, 32, 32), 10, Key(0))
    short = {"Conv2d": "conv", "MaxPool2d": "M", "Linear": "linear", "Dropout2d": "drop2d", "Dropout": "drop"}
    layers = [*model.layers, model.classifier]
    assert {type(layer).__name__ for layer in layers} <= {*short, "ReLU", "Flatten"}
    outputs = {"Conv2d": "out_channels", "Linear": "out_features"}
    return [
        str(getattr(layer, outputs[kind])) if (kind := type(layer).__name__) in outputs else short[kind]
        for layer in layers
        if type(layer).__name__ in short
    ]


def test_both_vgg9_are_layers_in_a_row() -> None:
    fedma = "32 64 M 128 128 M drop2d 256 256 M drop 512 512 drop 10"
    feddf = "32 M 64 M 128 128 M 256 256 M 256 256 M 10"
    assert layer_names(Vgg9()) == fedma.split()
    assert layer_names(Vgg9(variant="feddf")) == feddf.split()
