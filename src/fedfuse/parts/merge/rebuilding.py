"""A client's own network, rebuilt from the matched one (FedMA "with communication", Wang et al., 2020, section 3).

The matched network may be wider than the clients' networks. If they trained all of it, layers would grow with every
matching; so a client begins with a network as wide as its model says, made of the global neurons that its own were
matched with. A client that was not matched the last time gets, of every layer, the neurons that most clients have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from fedfuse.core.messages import Tensors, Update
from fedfuse.core.weights import Weights
from fedfuse.models.chain import Link, take_back
from fedfuse.parts.merge.layer import Layer, network_of

OWN, OTHERS = "own", "others"
"""Where the memory has the places of each client's neurons in the matched network, and those for all other clients."""


def by_client(kind: str, places: Mapping[Link, Sequence[Tensor]], updates: Sequence[Update]) -> dict[str, Tensor]:
    """The places of the updates' neurons in each layer, as a memory has them."""
    return {
        f"{kind}/{link.name}/{update.client}": place.to(torch.int32)
        for link, of_clients in places.items()
        for update, place in zip(updates, of_clients, strict=True)
    }


def remembered(places: Mapping[Link, Sequence[Tensor]], updates: Sequence[Update]) -> dict[str, Tensor]:
    """What a memory needs, once all layers are matched, for networks to be rebuilt."""
    others = {f"{OWN}/{link.name}/{OTHERS}": most_common(of_clients) for link, of_clients in places.items()}
    return {**by_client(OWN, places, updates), **others}


def most_common(places: Sequence[Tensor]) -> Tensor:
    """As many global neurons as a client has: those that most clients have, the lower index first among equals."""
    popularity = torch.bincount(torch.cat([place.long() for place in places]))
    return popularity.argsort(descending=True, stable=True)[: len(places[0])].sort().values.to(torch.int32)


def rebuilt(weights: Weights, links: Sequence[Link], memory: Tensors, client: int) -> Weights:
    """The network with which a client begins."""
    tensors: dict[str, Tensor] = {}
    inputs: Tensor | None = None
    for link in links:
        layer = Layer.of(weights, link)
        if inputs is not None:
            layer = Layer(take_back(layer.weight, inputs, link.block), layer.bias)
        if link is not links[-1]:
            others = memory[f"{OWN}/{link.name}/{OTHERS}"]
            inputs = memory.get(f"{OWN}/{link.name}/{client}", others).long()
            layer = layer.neurons(inputs)
        tensors |= layer.named(link)
    return network_of(tensors, weights.layout)
