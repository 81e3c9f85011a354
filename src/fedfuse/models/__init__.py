"""The model zoo: architectures a config can name, and the classifiers they build."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

import torch
from torch import nn

from fedfuse.core.choice import OneOf
from fedfuse.core.randomness import Key
from fedfuse.core.text import TextShape
from fedfuse.core.weights import Layout
from fedfuse.models.architecture import Architecture, create
from fedfuse.models.classifier import Classifier
from fedfuse.models.cnn import Cnn, CnnDeep
from fedfuse.models.convnet import ConvNet
from fedfuse.models.deep_resnet import DeepResNet
from fedfuse.models.encoder import Encoder
from fedfuse.models.mlp import Mlp
from fedfuse.models.mobilenet import MobileNetV2
from fedfuse.models.own import Own
from fedfuse.models.resnet import ResNet
from fedfuse.models.shufflenet import ShuffleNetV2
from fedfuse.models.text import TextCnn, TextTransformer
from fedfuse.models.vgg import Vgg9

__all__ = [
    "ARCHITECTURES",
    "AnyArchitecture",
    "Architecture",
    "Classifier",
    "Cnn",
    "CnnDeep",
    "ConvNet",
    "DeepResNet",
    "Encoder",
    "Listed",
    "Mlp",
    "MobileNetV2",
    "Own",
    "ResNet",
    "ShuffleNetV2",
    "TextCnn",
    "TextTransformer",
    "Vgg9",
    "create",
    "layout_of",
    "parameter_count",
]

AnyArchitecture = Annotated[
    Architecture,
    OneOf(
        Mlp,
        Cnn,
        CnnDeep,
        ConvNet,
        Vgg9,
        ResNet,
        DeepResNet,
        ShuffleNetV2,
        MobileNetV2,
        TextCnn,
        TextTransformer,
        Encoder,
        Own,
    ),
]
"""What the ``model`` of an experiment file may be."""


@dataclass(frozen=True)
class Listed:
    """One line of ``fedfuse models``; if it has defaults, ``config(arch=name)`` is the architecture with them."""

    config: type[Architecture]
    description: str
    shape: tuple[int, ...] = (3, 32, 32)
    """Of the inputs for which the list gives numbers."""
    extra: str | None = None
    """The optional packages that it needs."""

    @property
    def has_defaults(self) -> bool:
        """Whether ``arch`` is all that a config must say, and nothing else must be installed."""
        required = (field.is_required() for name, field in self.config.model_fields.items() if name != "arch")
        return self.extra is None and not any(required)


TEXTS = TextShape(length=64, vocabulary=10_000)


ARCHITECTURES: Mapping[str, Listed] = MappingProxyType(
    {
        "mlp": Listed(Mlp, "fully connected layers with ReLU, for inputs of any shape"),
        "cnn1": Listed(Cnn, "FedED's CNN1: one 5x5 convolution (2 channels) and a linear layer"),
        "cnn2": Listed(Cnn, "FedED's CNN2: one 5x5 convolution (8 channels) and a linear layer"),
        "cnn3": Listed(Cnn, "FedED's CNN3: one 5x5 convolution (16 channels) and a linear layer"),
        "cnn_deep": Listed(CnnDeep, "FedED's EMNIST CNN3: two 5x5 convolutions (8, 16 channels) and a linear layer"),
        "convnet": Listed(ConvNet, "FedBE's ConvNet: three 3x3 convolutions and two linear layers, from 18x18 pixels"),
        "vgg9": Listed(Vgg9, "VGG-9 of FedMA or of FedDF: 3x3 convolutions and linear layers in a row, no norm"),
        "resnet8": Listed(ResNet, "ResNet-8 of FedDF and FedGKD: one basic block per stage"),
        "resnet20": Listed(ResNet, "ResNet-20 of FedDF and FedBE: three basic blocks per stage"),
        "resnet32": Listed(ResNet, "ResNet-32 of FedDF and FedBE: five basic blocks per stage"),
        "resnet44": Listed(ResNet, "ResNet-44 of FedBE: seven basic blocks per stage"),
        "resnet56": Listed(ResNet, "ResNet-56 of FedBE: nine basic blocks per stage"),
        "resnet18": Listed(
            DeepResNet, "ResNet-18 with a stem for small images, or the original one of the FedED thesis"
        ),
        "resnet50": Listed(DeepResNet, "ResNet-50 of FedGKD (Tiny-ImageNet): bottlenecks, a stem for small images"),
        "shufflenetv2": Listed(ShuffleNetV2, "ShuffleNetV2 of FedDF, with a stem for small images"),
        "mobilenetv2": Listed(MobileNetV2, "MobileNetV2 of FedBE, with a stem for small images"),
        "text_cnn": Listed(TextCnn, "for texts: convolutions over 3, 4 and 5 words, maximum over the text", TEXTS),
        "text_transformer": Listed(
            TextTransformer, "for texts: a small encoder of two layers, mean over the text", TEXTS
        ),
        "distilbert": Listed(Encoder, "for texts: DistilBERT of FedDF and FedGKD, through transformers", extra="text"),
        "encoder": Listed(
            Encoder, "for texts: any BERT-like encoder of transformers, fresh or pre-trained", extra="text"
        ),
        "own": Listed(Own, "whatever network a function of yours returns"),
    }
)


def parameter_count(model: nn.Module) -> int:
    """How many numbers training adjusts (P of the papers); BatchNorm's statistics are not among them."""
    return Layout.of(model).parameter_count


def layout_of(architecture: Architecture, input_shape: tuple[int, ...], classes: int) -> Layout:
    """Names and shapes of a model's weights, found without drawing them; not for ``own``, which has to run."""
    with torch.device("meta"):
        return Layout.of(create(architecture, input_shape, classes, Key(0)))
