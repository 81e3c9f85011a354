"""The model zoo: architectures a config can name, and the classifiers they build."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

from pydantic import Field
from torch import nn

from fedfuse.core.weights import Layout
from fedfuse.models.architecture import Architecture, create
from fedfuse.models.classifier import Classifier
from fedfuse.models.cnn import Cnn, CnnDeep
from fedfuse.models.convnet import ConvNet
from fedfuse.models.mlp import Mlp
from fedfuse.models.resnet import ResNet

__all__ = [
    "ARCHITECTURES",
    "AnyArchitecture",
    "Architecture",
    "Classifier",
    "Cnn",
    "CnnDeep",
    "ConvNet",
    "Listed",
    "Mlp",
    "ResNet",
    "create",
    "parameter_count",
]

AnyArchitecture = Annotated[Mlp | Cnn | CnnDeep | ConvNet | ResNet, Field(discriminator="arch")]
"""What the ``model`` of an experiment file may be."""


@dataclass(frozen=True)
class Listed:
    """One line of ``fedfuse models``; ``config(arch=name)`` is the architecture with its defaults."""

    config: type[Architecture]
    description: str


ARCHITECTURES: Mapping[str, Listed] = MappingProxyType(
    {
        "mlp": Listed(Mlp, "fully connected layers with ReLU, for inputs of any shape"),
        "cnn1": Listed(Cnn, "FedED's CNN1: one 5x5 convolution (2 channels) and a linear layer"),
        "cnn2": Listed(Cnn, "FedED's CNN2: one 5x5 convolution (8 channels) and a linear layer"),
        "cnn3": Listed(Cnn, "FedED's CNN3: one 5x5 convolution (16 channels) and a linear layer"),
        "cnn_deep": Listed(CnnDeep, "FedED's EMNIST CNN3: two 5x5 convolutions (8, 16 channels) and a linear layer"),
        "convnet": Listed(ConvNet, "FedBE's ConvNet: three 3x3 convolutions and two linear layers, from 18x18 pixels"),
        "resnet8": Listed(ResNet, "ResNet-8 of FedDF and FedGKD: one basic block per stage"),
        "resnet20": Listed(ResNet, "ResNet-20 of FedDF and FedBE: three basic blocks per stage"),
        "resnet32": Listed(ResNet, "ResNet-32 of FedDF and FedBE: five basic blocks per stage"),
        "resnet44": Listed(ResNet, "ResNet-44 of FedBE: seven basic blocks per stage"),
        "resnet56": Listed(ResNet, "ResNet-56 of FedBE: nine basic blocks per stage"),
    }
)


def parameter_count(model: nn.Module) -> int:
    """How many numbers training adjusts (P of the papers); BatchNorm's statistics are not among them."""
    return Layout.of(model).parameter_count
