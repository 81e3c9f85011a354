"""The sizes of the published models, to the last parameter and buffer."""

from __future__ import annotations

import pytest

from fedfuse.core.randomness import Key
from fedfuse.core.weights import Layout
from fedfuse.models import Architecture, Cnn, CnnDeep, ConvNet, Mlp, ResNet, create, parameter_count

CIFAR = (3, 32, 32)
MNIST = (1, 28, 28)

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
]


@pytest.mark.parametrize(("architecture", "shape", "classes", "parameters", "buffers"), PUBLISHED)
def test_published_sizes(
    architecture: Architecture, shape: tuple[int, ...], classes: int, parameters: int, buffers: int
) -> None:
    model = create(architecture, shape, classes, Key(0))
    layout = Layout.of(model)
    assert (parameter_count(model), layout.size - layout.parameter_count) == (parameters, buffers)


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
