"""Matched averaging: the merge of FedMA (Wang et al., Federated Learning with Matched Averaging, ICLR 2020).

Hidden neurons have no order of their own, so two clients' neurons of the same number need not be alike. From the first
layer to the last but one: match the clients' neurons (``matching.py``), replace them by the global ones, and bring
every client's inputs of the next layer into the global order, with zeros for neurons that the client has not. A layer
may grow or shrink by this. Of the output layer, row c is

    sum_k (n_k^c / sum_j n_j^c) w_k^c        n_k^c: client k's examples of class c, where updates bring label counts

and the average by data size where they do not, and for a class that nobody has.

What clients begin with afterwards are networks of their own widths (``rebuilding.py``).

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
from fedfuse.core.weights import Weights
from fedfuse.models.chain import Link, carry_over, chain
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView
from fedfuse.parts.merge.base import Merged, WeightedMerge
from fedfuse.parts.merge.layer import Layer, network_of
from fedfuse.parts.merge.matching import Prior, match
from fedfuse.parts.merge.rebuilding import OWN, by_client, rebuilt, remembered
from fedfuse.parts.protocol.layers import ASSIGNMENT, LATEST, stage_of
from fedfuse.parts.scores.labels import COUNTS

JOINED, PLACES = "joined", "places"
"""What the memory has of an unfinished cycle: the layers matched so far, and the places of clients' neurons in them."""


@dataclass(frozen=True)
class MatchedLayer:
    """The global layer, and for each client the global index of each of its neurons."""

    layer: Layer
    assignments: tuple[Tensor, ...]

    @property
    def width(self) -> int:
        return len(self.layer.weight)


class Matched(WeightedMerge):
    """The clients' networks, averaged neuron by matching neuron; layers may become wider than the model says."""

    kind: Literal["matched"] = "matched"
    changes_widths: ClassVar[bool] = True
    sigma: float = Field(1.0, gt=0, description="how far a client's neuron is from the global one that it stems from")
    sigma0: float = Field(1.0, gt=0, description="how far global neurons are from the prior mean; large: plain means")
    gamma: float = Field(7.0, gt=0, description="mass of the beta process: the larger, the more neurons are kept apart")
    iterations: int = Field(5, ge=0, description="sweeps in which every client is taken out and matched again")
    prior_bias: float = Field(0.1, description="prior mean of a bias; that of a weight is 0")
    most_popular: int = Field(
        10, ge=1, description="how many clients at most speak for a neuron that they have, as in the released code"
    )

    def check(self, context: CheckContext) -> None:
        for prototype, architecture in context.bank.architectures.items():
            try:
                chain(context.bank.network(prototype))
            except ConfigError as reason:
                raise ConfigError(
                    f"method.merge matched goes from layer to layer, which model '{prototype}' ({architecture.arch}) "
                    f"does not allow: {reason}; choose one without norm layers and shortcuts, such as mlp or convnet"
                ) from None

    def offer(self, view: ServerView, prototype: str, client: int) -> Weights:
        weights = view.weights[prototype]
        if weights.layout == view.bank.layout(prototype):
            return weights
        return rebuilt(weights, chain(view.bank.network(prototype)), view.memory, client)

    def broadcast(self, view: ServerView, prototype: str, clients: Sequence[int]) -> Mapping[int, Tensors]:
        """Layer by layer: the layer that was matched last, and where each client's neurons are in it."""
        links = chain(view.bank.network(prototype))
        joined = [link for link in links if f"{JOINED}/{link.weight}" in view.memory]
        if not clients or not joined or stage_of(view.round, view.bank) == 0:
            return {}
        latest = joined[-1]
        layer = {f"{LATEST}{name}": view.memory[f"{JOINED}/{name}"] for name in latest.names}
        return {c: {**layer, ASSIGNMENT: view.memory[f"{PLACES}/{latest.name}/{c}"]} for c in clients}

    def merge(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> Merged:
        links = chain(view.bank.network(prototype))
        sent = [link for link in links if link.weight in updates[0].weights]
        whole = len(sent) == len(links)
        return self._whole(view, links, updates) if whole else self._next(view, prototype, links, sent[0], updates)

    def _next(
        self, view: ServerView, prototype: str, links: Sequence[Link], link: Link, updates: Sequence[Update]
    ) -> Merged:
        """One layer of the clients' networks, whose inputs are in the global order already.

        The prototype stays as it is until its last layer has come.
        """
        previous = view.weights[prototype]
        layers = [Layer.of(update.weights, link) for update in updates]
        so_far = {} if link == links[0] else _named(view.memory, JOINED, PLACES)
        if link == links[-1]:
            output = output_layer(layers, self.class_shares(updates, view.bank.classes)).named(link)
            joined = {name.removeprefix(f"{JOINED}/"): tensor for name, tensor in so_far.items()}
            places = {
                hidden: [so_far[f"{PLACES}/{hidden.name}/{update.client}"] for update in updates]
                for hidden in links[:-1]
            }
            return Merged(network_of({**joined, **output}, previous.layout), remembered(places, updates))
        matched = self.match_layer(layers, view.key.child(link.name))
        named = {f"{JOINED}/{name}": tensor for name, tensor in matched.layer.named(link).items()}
        running = so_far | named | by_client(PLACES, {link: matched.assignments}, updates)
        return Merged(previous, _named(view.memory, OWN) | running)

    def _whole(self, view: ServerView, links: Sequence[Link], updates: Sequence[Update]) -> Merged:
        *hidden, output = links
        tensors: dict[str, Tensor] = {}
        places: dict[Link, Sequence[Tensor]] = {}
        before: MatchedLayer | None = None
        for link in hidden:
            before = self.match_layer(_layers(updates, link, before), view.key.child(link.name))
            tensors |= before.layer.named(link)
            places[link] = before.assignments
        shares = self.class_shares(updates, view.bank.classes)
        tensors |= output_layer(_layers(updates, output, before), shares).named(output)
        return Merged(network_of(tensors, updates[0].weights.layout), remembered(places, updates))

    def match_layer(self, layers: Sequence[Layer], key: Key) -> MatchedLayer:
        """Match the neurons of one hidden layer whose inputs are in the same order for all clients."""
        matrices = [layer.matrix() for layer in layers]
        first = layers[0]
        mean = torch.zeros(matrices[0].shape[1], dtype=torch.float64)
        if first.bias is not None:
            mean[-1] = self.prior_bias
        prior = Prior(mean, self.sigma, self.sigma0, self.gamma, self.most_popular)
        matching = match(matrices, prior, self.iterations, key)
        return MatchedLayer(first.with_rows(matching.neurons), matching.assignments)

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
    average = torch.einsum("kc,kcd->cd", shares, torch.stack([layer.matrix() for layer in layers]))
    return layers[0].with_rows(average)


def _layers(updates: Sequence[Update], link: Link, before: MatchedLayer | None) -> list[Layer]:
    """The clients' layers at ``link``, their inputs in the order of the layer that was matched before."""
    layers = [Layer.of(update.weights, link) for update in updates]
    if before is None:
        return layers
    return [
        Layer(carry_over(layer.weight, assignment, before.width, link.block), layer.bias)
        for layer, assignment in zip(layers, before.assignments, strict=True)
    ]


def _named(memory: Tensors, *kinds: str) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in memory.items() if name.partition("/")[0] in kinds}
