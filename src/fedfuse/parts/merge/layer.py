"""One layer of a network as matching sees it: a row for each neuron."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from fedfuse.core.weights import Layout, Weights
from fedfuse.models.chain import Link


@dataclass(frozen=True)
class Layer:
    """Weight and bias of one layer, of a client or of the global network; row i belongs to neuron i."""

    weight: Tensor
    bias: Tensor | None

    @staticmethod
    def of(weights: Weights, link: Link) -> Layer:
        return Layer(weights[link.weight], None if link.bias is None else weights[link.bias])

    def named(self, link: Link) -> dict[str, Tensor]:
        named = {link.weight: self.weight}
        if link.bias is not None and self.bias is not None:
            named[link.bias] = self.bias
        return named

    def matrix(self) -> Tensor:
        """One row for each neuron: incoming weights, and the bias if there is one; in double precision."""
        weight = self.weight.flatten(1).double()
        return weight if self.bias is None else torch.cat([weight, self.bias.double().unsqueeze(1)], dim=1)

    def with_rows(self, matrix: Tensor) -> Layer:
        """The layer of these rows, with this one's kernel and type."""
        matrix = matrix.to(self.weight.dtype)
        weight, bias = (matrix, None) if self.bias is None else (matrix[:, :-1], matrix[:, -1])
        return Layer(weight.reshape(-1, *self.weight.shape[1:]), bias)

    def neurons(self, which: Tensor) -> Layer:
        """Some of the neurons, in this order."""
        return Layer(self.weight[which], None if self.bias is None else self.bias[which])


def network_of(tensors: Mapping[str, Tensor], order: Layout) -> Weights:
    """The tensors of all layers as weights, in the order of a layout of the same names."""
    layout = Layout(tuple((name, tuple(tensors[name].shape)) for name, _ in order.parameters), order.buffers)
    flat = torch.cat([tensors[name].reshape(-1) for name, _ in order.parameters])
    return Weights(flat, order if layout == order else layout)
