"""Matched averaging: the merge of FedMA (Wang et al., Federated Learning with Matched Averaging, ICLR 2020).

Hidden neurons have no order of their own, so two clients' neurons of the same number need not be alike. From the first
layer to the last but one: match the clients' neurons (``matching.py``), replace them by the global ones, and bring
every client's inputs of the next layer into the global order, with zeros for neurons that the client has not. A layer
may grow or shrink by this. Of the output layer, row c is

    sum_k (n_k^c / sum_j n_j^c) w_k^c        n_k^c: client k's examples of class c, where updates bring label counts

and the average by data size where they do not, and for a class that nobody has.

A global neuron is its posterior mean. Of c neurons with mean w it is (c w / sigma^2 + mu0 / sigma0^2) / (c / sigma^2 +
1 / sigma0^2): with sigma = sigma0 = 1, as in FedMA's code, every neuron shrinks to c / (c + 1) of itself (half, for one
that a single client has) and its bias is drawn to ``prior_bias``. With a large sigma0 it is the plain mean w, and one
client alone gets its own network back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Tensors, Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Layout, Weights
from fedfuse.exchange.layers import ASSIGNMENT, LATEST
from fedfuse.exchange.weighting.labels import COUNTS
from fedfuse.merge.base import Merge, Merged
from fedfuse.merge.matching import Prior, match
from fedfuse.models.chain import Link, carry_over, chain
from fedfuse.runtime.part import Setting
from fedfuse.runtime.view import ServerView

JOINED = "joined/"
"""Where the memory has the layers that were matched so far, beside the latest of them."""


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


@dataclass(frozen=True)
class MatchedLayer:
    """The global layer, and for each client the global index of each of its neurons."""

    layer: Layer
    assignments: tuple[Tensor, ...]

    @property
    def width(self) -> int:
        return len(self.layer.weight)


class Matched(Merge):
    """The clients' networks, averaged neuron by matching neuron; layers may become wider than the model says."""

    kind: Literal["matched"] = "matched"
    changes_widths: ClassVar[bool] = True
    sigma: float = Field(1.0, gt=0, description="how far a client's neuron is from the global one that it stems from")
    sigma0: float = Field(1.0, gt=0, description="how far global neurons are from the prior mean; large: plain means")
    gamma: float = Field(7.0, gt=0, description="mass of the beta process: the larger, the more neurons are kept apart")
    iterations: int = Field(5, ge=0, description="sweeps in which every client is taken out and matched again")
    prior_bias: float = Field(0.1, description="prior mean of a bias; that of a weight is 0")

    def check(self, setting: Setting) -> None:
        for prototype, architecture in setting.bank.architectures.items():
            try:
                chain(setting.bank.network(prototype))
            except ConfigError as reason:
                raise ConfigError(
                    f"method.merge matched goes from layer to layer, which model '{prototype}' ({architecture.arch}) "
                    f"does not allow: {reason}; choose one without norm layers and shortcuts, such as mlp or convnet"
                ) from None

    def brief(self, view: ServerView, clients: Sequence[int]) -> Mapping[int, Tensors]:
        """Layer by layer: the layer that was matched last, and where each client's neurons are in it."""
        latest = {name: tensor for name, tensor in view.memory.items() if name.startswith(LATEST)}
        return {c: {**latest, ASSIGNMENT: view.memory[f"{ASSIGNMENT}/{c}"]} for c in clients} if latest else {}

    def merge(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> Merged:
        links = chain(view.bank.network(prototype))
        sent = [link for link in links if link.weight in updates[0].weights]
        return self._whole(view, links, updates) if len(sent) == len(links) else self._next(view, prototype, updates)

    def _next(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> Merged:
        """One layer of the clients' networks, whose inputs are in the global order already.

        The prototype stays as it is until its last layer has come.
        """
        links, previous = chain(view.bank.network(prototype)), view.weights[prototype]
        (link,) = [link for link in links if link.weight in updates[0].weights]
        layers = [Layer.of(update.weights, link) for update in updates]
        joined = {name: t for name, t in view.memory.items() if name.startswith(JOINED)} if link != links[0] else {}
        if link == links[-1]:
            output = output_layer(layers, self.class_shares(updates, view.bank.classes)).named(link)
            whole = {**{name.removeprefix(JOINED): t for name, t in joined.items()}, **output}
            return Merged(_joined(whole, previous.layout))
        matched = self.match_layer(layers, view.key.child(link.name))
        named = matched.layer.named(link)
        places = zip(updates, matched.assignments, strict=True)
        return Merged(
            previous,
            joined
            | {f"{JOINED}{name}": tensor for name, tensor in named.items()}
            | {f"{LATEST}{name}": tensor for name, tensor in named.items()}
            | {f"{ASSIGNMENT}/{update.client}": assignment.to(torch.int32) for update, assignment in places},
        )

    def _whole(self, view: ServerView, links: Sequence[Link], updates: Sequence[Update]) -> Merged:
        *hidden, output = links
        tensors: dict[str, Tensor] = {}
        before: MatchedLayer | None = None
        for link in hidden:
            before = self.match_layer(_layers(updates, link, before), view.key.child(link.name))
            tensors |= before.layer.named(link)
        shares = self.class_shares(updates, view.bank.classes)
        tensors |= output_layer(_layers(updates, output, before), shares).named(output)
        return Merged(_joined(tensors, updates[0].weights.layout))

    def match_layer(self, layers: Sequence[Layer], key: Key) -> MatchedLayer:
        """Match the neurons of one hidden layer whose inputs are in the same order for all clients."""
        matrices = [_matrix(layer) for layer in layers]
        first = layers[0]
        mean = torch.zeros(matrices[0].shape[1], dtype=torch.float64)
        if first.bias is not None:
            mean[-1] = self.prior_bias
        matching = match(matrices, Prior(mean, self.sigma, self.sigma0, self.gamma), self.iterations, key)
        return MatchedLayer(_layer(matching.neurons, like=first), matching.assignments)

    def class_shares(self, updates: Sequence[Update], classes: int) -> Tensor:
        """How much each client (row) counts in the output for each class (column); columns sum to one."""
        sizes = [float(u.examples) if self.weighting == "examples" else 1.0 for u in updates]
        plain = (torch.tensor(sizes, dtype=torch.float64) / sum(sizes)).unsqueeze(1).expand(-1, classes)
        if self.weighting == "uniform" or any(COUNTS not in u.extras for u in updates):
            return plain
        counts = torch.stack([u.extras[COUNTS].double() for u in updates])
        total = counts.sum(dim=0)
        return torch.where(total > 0, counts / total, plain)


def output_layer(layers: Sequence[Layer], shares: Tensor) -> Layer:
    """The clients' output layers averaged class by class, with ``shares`` as ``Matched.class_shares`` gives them."""
    average = torch.einsum("kc,kcd->cd", shares, torch.stack([_matrix(layer) for layer in layers]))
    return _layer(average, like=layers[0])


def _layers(updates: Sequence[Update], link: Link, before: MatchedLayer | None) -> list[Layer]:
    """The clients' layers at ``link``, their inputs in the order of the layer that was matched before."""
    layers = [Layer.of(update.weights, link) for update in updates]
    if before is None:
        return layers
    return [
        Layer(carry_over(layer.weight, assignment, before.width, link.block), layer.bias)
        for layer, assignment in zip(layers, before.assignments, strict=True)
    ]


def _matrix(layer: Layer) -> Tensor:
    """One row for each neuron: incoming weights, and the bias if there is one."""
    weight = layer.weight.flatten(1).double()
    return weight if layer.bias is None else torch.cat([weight, layer.bias.double().unsqueeze(1)], dim=1)


def _layer(matrix: Tensor, like: Layer) -> Layer:
    """The layer with these rows, in the kernel and type of ``like``."""
    matrix = matrix.to(like.weight.dtype)
    weight, bias = (matrix, None) if like.bias is None else (matrix[:, :-1], matrix[:, -1])
    return Layer(weight.reshape(-1, *like.weight.shape[1:]), bias)


def _joined(tensors: Mapping[str, Tensor], order: Layout) -> Weights:
    """The tensors as weights, in the order of a layout of the same names."""
    layout = Layout(tuple((name, tuple(tensors[name].shape)) for name, _ in order.parameters), order.buffers)
    flat = torch.cat([tensors[name].reshape(-1) for name, _ in order.parameters])
    return Weights(flat, order if layout == order else layout)
