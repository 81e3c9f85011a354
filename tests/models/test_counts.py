"""The sizes of the published models, to the last parameter and buffer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedfuse.core.randomness import Key
from fedfuse.core.weights import Layout
from fedfuse.models import (
    ARCHITECTURES,
    Architecture,
    Cnn,
    CnnDeep,
    ConvNet,
    DeepResNet,
    Mlp,
    MobileNetV2,
    ResNet,
    ShuffleNetV2,
    Vgg9,
    create,
    layout_of,
    parameter_count,
)
from fedfuse.models.autoencoder import autoencoder

CIFAR = (3, 32, 32)
MNIST = (1, 28, 28)

SHUFFLENET_STATISTICS = 2 * (
    # stem; per stage: a down-sampling unit (left: inputs, half; right: three halves) and basic units of three halves
    24 + (24 + 4 * 58 + 3 * 3 * 58) + (116 + 4 * 116 + 7 * 3 * 116) + (232 + 4 * 232 + 3 * 3 * 232) + 1024
)

PUBLISHED = [
    (ResNet(arch="resnet8"), CIFAR, 10, 78_042, 672),
    (ResNet(arch="resnet8"), CIFAR, 100, 83_892, 672),
    (ResNet(arch="resnet20"), CIFAR, 10, 272_474, 1568),
    (ResNet(arch="resnet32"), CIFAR, 10, 466_906, 2464),
    (ResNet(arch="resnet20", width=64), CIFAR, 1000, 4_582_184, 6272),
    (ResNet(arch="resnet32", width=64), CIFAR, 1000, 7_682_344, 9856),
    (ResNet(arch="resnet20", shortcut="pad"), CIFAR, 10, 269_722, 1376),
    (ResNet(arch="resnet32", shortcut="pad"), CIFAR, 10, 464_154, 2272),
    (ResNet(arch="resnet44", shortcut="pad"), CIFAR, 10, 658_586, 3168),
    (ResNet(arch="resnet56", shortcut="pad"), CIFAR, 10, 853_018, 4064),
    (ConvNet(), CIFAR, 10, 122_570, 0),
    (Cnn(arch="cnn1"), MNIST, 10, 1042, 0),
    (Cnn(arch="cnn2"), MNIST, 10, 4138, 0),
    (Cnn(arch="cnn3"), MNIST, 10, 8266, 0),
    (Cnn(arch="cnn1"), MNIST, 26, 2626, 0),
    (Cnn(arch="cnn2", channels=16), MNIST, 26, 20_826, 0),
    (CnnDeep(), MNIST, 26, 23_834, 0),
    (Vgg9(), CIFAR, 10, 3_491_530, 0),
    (Vgg9(variant="feddf"), CIFAR, 10, 2_308_810, 0),
    (ShuffleNetV2(), CIFAR, 10, 1_263_854, SHUFFLENET_STATISTICS),
    (ShuffleNetV2(), CIFAR, 100, 1_356_104, SHUFFLENET_STATISTICS),
    (ShuffleNetV2(), CIFAR, 1000, 2_278_604, SHUFFLENET_STATISTICS),
    (DeepResNet(arch="resnet18", stem="large", dropout=0.5), CIFAR, 10, 11_181_642, 9600),
    (DeepResNet(arch="resnet18"), CIFAR, 10, 11_181_642 - 64 * 3 * (7 * 7 - 3 * 3), 9600),
    (DeepResNet(arch="resnet50", stem="large"), (3, 224, 224), 1000, 25_557_032, 53_120),
    (DeepResNet(arch="resnet50"), (3, 64, 64), 200, 25_557_032 - 800 * 2049 - 64 * 3 * (7 * 7 - 3 * 3), 53_120),
    (MobileNetV2(), CIFAR, 1000, 3_504_872, 34_112),
]


@pytest.mark.parametrize(("architecture", "shape", "classes", "parameters", "buffers"), PUBLISHED)
def test_published_sizes(
    architecture: Architecture, shape: tuple[int, ...], classes: int, parameters: int, buffers: int
) -> None:
    layout = layout_of(architecture, shape, classes)
    assert (layout.parameter_count, layout.size - layout.parameter_count) == (parameters, buffers)


def test_group_norm_has_batch_norms_parameters_and_no_buffers() -> None:
    layout = Layout.of(create(ResNet(arch="resnet8", norm="group"), CIFAR, 10, Key(0)))
    assert (layout.parameter_count, layout.size) == (78_042, 78_042)


def test_an_extra_layer_of_the_convnet_is_one_convolution() -> None:
    def count(extra: int) -> int:
        return parameter_count(create(ConvNet(extra_layers=extra), CIFAR, 10, Key(0)))

    assert count(3) - count(0) == 3 * (64 * 64 * 9 + 64)


def test_mlp_size() -> None:
    assert parameter_count(create(Mlp(hidden=(5, 3)), (1, 8, 8), 10, Key(0))) == 64 * 5 + 5 + 5 * 3 + 3 + 3 * 10 + 10
    assert parameter_count(create(Mlp(hidden=()), (4,), 3, Key(0))) == 4 * 3 + 3


@pytest.mark.parametrize(
    ("shape", "parameters", "norms"), [(MNIST, 87_125, (16, 16, 8)), (CIFAR, 499_459, (64, 64, 32))]
)
def test_autoencoder_sizes(shape: tuple[int, ...], parameters: int, norms: tuple[int, ...]) -> None:
    layout = Layout.of(autoencoder(shape))
    assert (layout.parameter_count, layout.size - layout.parameter_count) == (parameters, 2 * sum(norms))


@pytest.mark.parametrize("architecture", [Mlp(), ResNet(arch="resnet8", norm="group"), MobileNetV2(width=4)])
def test_a_layout_without_weights_is_the_models(architecture: Architecture) -> None:
    assert layout_of(architecture, CIFAR, 7) == Layout.of(create(architecture, CIFAR, 7, Key(0)))


def test_mobilenet_size_from_the_table_of_its_paper() -> None:
    def norm(channels: int) -> int:
        return 2 * channels

    count = 3 * 32 * 9 + norm(32)
    inputs = 32
    for expansion, outputs, repeats in (
        (1, 16, 1),
        (6, 24, 2),
        (6, 32, 3),
        (6, 64, 4),
        (6, 96, 3),
        (6, 160, 3),
        (6, 320, 1),
    ):
        for _ in range(repeats):
            hidden = expansion * inputs
            if expansion > 1:
                count += inputs * hidden + norm(hidden)
            count += 9 * hidden + norm(hidden) + hidden * outputs + norm(outputs)
            inputs = outputs
    count += 320 * 1280 + norm(1280) + 1280 * 10 + 10
    assert layout_of(MobileNetV2(), CIFAR, 10).parameter_count == count


def test_gray_images_of_28_pixels_leave_fedmas_vgg_three_by_three() -> None:
    gray, colour = (layout_of(Vgg9(), shape, 10).parameter_count for shape in (MNIST, CIFAR))
    assert colour - gray == 2 * 32 * 9 + 256 * (16 - 9) * 512


def test_the_table_in_the_docs_is_true() -> None:
    text = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    written = re.findall(r"^\| `(\w+)` \| (.+) \| ([\d,]+) \| ([\d,]+) \|$", text, re.MULTILINE)
    actual = []
    for name, listed in ARCHITECTURES.items():
        if listed.has_defaults:
            layout = layout_of(listed.config(arch=name), listed.shape, 10)
            sizes = (layout.parameter_count, layout.size - layout.parameter_count)
            actual.append((name, listed.description, *(f"{size:,}" for size in sizes)))
    assert written == actual
