"""All links of a method, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task, Tensors, of_part, within
from fedfuse.core.weights import Weights
from fedfuse.parts.base import Shapes
from fedfuse.parts.context import ClientContext
from fedfuse.parts.upload.base import SLOT, Packed, Upload
from fedfuse.runtime.bank import ModelBank


@dataclass(frozen=True)
class Chain:
    """Links in the order in which a client applies them; each has a state and random numbers of its own."""

    links: Sequence[Upload]

    def begin(self, weights: Weights, state: Tensors) -> Weights:
        for place, link in enumerate(self.links):
            weights = link.begin(weights, of_part(f"{SLOT}/{place}", state))
        return weights

    def pack(self, sent: Tensors, client: ClientContext) -> Packed:
        state: dict[str, Tensor] = {}
        for place, link in enumerate(self.links):
            own = replace(client.of(f"{SLOT}/{place}"), key=client.key.child(SLOT, place))
            packed = link.pack(sent, own)
            sent, state = packed.tensors, {**state, **within(str(place), packed.state)}
        return Packed(sent, state)

    def specs(self, sent: Shapes, prototype: str, bank: ModelBank) -> list[Shapes]:
        """Names and shapes before the first link and after each."""
        specs = [sent]
        for place, link in enumerate(self.links):
            try:
                specs.append(link.spec(specs[-1], prototype, bank))
            except KeyError as missing:
                left = ", ".join(specs[-1]) or "nothing"
                raise ConfigError(
                    f"method.upload[{place}] {link.kind} works on {missing.args[0]}, but what travels there is {left}"
                ) from None
        return specs

    def unpack(self, came: Tensors, sent: Shapes, task: Task, bank: ModelBank) -> Tensors:
        specs = self.specs(sent, task.prototype, bank)
        for link, spec in zip(reversed(self.links), reversed(specs[:-1]), strict=True):
            came = link.unpack(came, spec, task, bank)
        return came

    def as_received(self, predictions: Tensor) -> Tensor:
        for link in self.links:
            predictions = link.as_received(predictions)
        return predictions
