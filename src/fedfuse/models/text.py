"""Text models that are trained from scratch: both read the attention mask off the tokens, so padding changes nothing.

``text_cnn`` (Kim, 2014): convolutions of several widths over word embeddings, the maximum of each over the text.
``text_transformer``: a small pre-norm encoder with learned positions, and the mean of its outputs over the text.
"""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from fedfuse.core.text import PADDING
from fedfuse.models.architecture import Architecture, Count, require_text
from fedfuse.models.classifier import Classifier

Dropout = Annotated[float, Field(ge=0, lt=1)]


class TextCnn(Architecture):
    """Embedding, one convolution per width, maximum over time, dropout, linear layer."""

    arch: Literal["text_cnn"] = "text_cnn"
    embedding: Count = Field(64, description="numbers that stand for a word")
    channels: Annotated[Count, Field(description="of each convolution")] = 64
    widths: Annotated[tuple[Count, ...], Field(min_length=1, description="words that each convolution sees")] = (
        3,
        4,
        5,
    )
    dropout: Dropout = Field(0.2, description="share of the features dropped before the linear layer")

    def build(self, input_shape: tuple[int, ...], classes: int) -> Classifier:
        text = require_text(self.arch, input_shape)
        return _TextCnn(text.vocabulary, self.embedding, self.channels, self.widths, self.dropout, classes)


class TextTransformer(Architecture):
    """Embedding and positions, self-attention layers, masked mean, linear layer."""

    arch: Literal["text_transformer"] = "text_transformer"
    width: Count = Field(64, description="numbers that stand for a word, in every layer")
    heads: Count = Field(4, description="of the attention, among which the width is divided")
    layers: Annotated[Count, Field(le=1000)] = Field(2, description="self-attention layers")
    dropout: Dropout = Field(0.1, description="share of the numbers dropped inside the layers")

    @model_validator(mode="after")
    def _heads_divide_width(self) -> TextTransformer:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} cannot be divided among {self.heads} heads")
        return self

    def build(self, input_shape: tuple[int, ...], classes: int) -> Classifier:
        text = require_text(self.arch, input_shape)
        layers = [
            nn.TransformerEncoderLayer(
                self.width, self.heads, 4 * self.width, self.dropout, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(self.layers)
        ]
        return _TextTransformer(text.length, text.vocabulary, self.width, layers, self.dropout, classes)


class _TextCnn(Classifier):
    def __init__(
        self, vocabulary: int, embedding: int, channels: int, widths: tuple[int, ...], dropout: float, classes: int
    ) -> None:
        super().__init__()
        self.embedding = _embedding(vocabulary, embedding, deviation=0.1)
        self.convolutions = nn.ModuleList(_convolution(embedding, channels, width) for width in widths)
        self.dropout = nn.Dropout(dropout)
        self.feature_size = channels * len(widths)
        self.classifier = nn.Linear(self.feature_size, classes)

    def features(self, x: Tensor) -> Tensor:
        mask = (x != PADDING).unsqueeze(1)
        embedded = self.embedding(x).transpose(1, 2) * mask
        # After ReLU nothing is below the zeros that stand for padding, so they never win the maximum.
        found = [(convolution(embedded).relu() * mask).amax(dim=2) for convolution in self.convolutions]
        features: Tensor = self.dropout(torch.cat(found, dim=1))
        return features


class _TextTransformer(Classifier):
    def __init__(
        self,
        length: int,
        vocabulary: int,
        width: int,
        layers: list[nn.TransformerEncoderLayer],
        dropout: float,
        classes: int,
    ) -> None:
        super().__init__()
        self.embedding = _embedding(vocabulary, width, deviation=0.1)
        self.positions = _embedding(length, width, deviation=0.02)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(width)
        self.feature_size = width
        self.classifier = nn.Linear(width, classes)

    def features(self, x: Tensor) -> Tensor:
        mask = x != PADDING
        h: Tensor = self.dropout(self.embedding(x) + self.positions.weight[: x.shape[1]])
        for layer in self.layers:
            h = layer(h, src_key_padding_mask=~mask)
        return masked_mean(self.norm(h), mask)


def masked_mean(states: Tensor, mask: Tensor) -> Tensor:
    """The mean over the tokens of each text: (batch, length, width) to (batch, width)."""
    weight = mask.unsqueeze(2) / mask.sum(dim=1)[:, None, None]
    return (states * weight).sum(dim=1)


def _convolution(inputs: int, outputs: int, width: int) -> nn.Module:
    """As many outputs as inputs, whatever the width."""
    around = nn.ConstantPad1d(((width - 1) // 2, width // 2), 0.0)
    return nn.Sequential(around, nn.Conv1d(inputs, outputs, width))


def _embedding(count: int, width: int, deviation: float) -> nn.Embedding:
    layer = nn.Embedding(count, width)
    nn.init.normal_(layer.weight, std=deviation)
    return layer
