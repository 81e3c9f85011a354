"""All links of a method, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task, Tensors, Update, of_part, within
from fedfuse.core.weights import Weights
from fedfuse.parts.base import Shapes
from fedfuse.parts.context import ClientContext, ServerView
from fedfuse.parts.upload.base import SLOT, Packed, Upload
from fedfuse.runtime.bank import ModelBank


@dataclass(frozen=True)
class Chain:
    """Links in the order in which a client applies them; each has a state and random numbers of its own."""

    links: Sequence[Upload]

    def begin(self, weights: Weights, state: Tensors) -> Weights:
        for place, link in enumerate(self.links):
            weights = link.begin(weights, of_part(name_of(place), state))
        return weights

    def pack(self, sent: Tensors, client: ClientContext) -> Packed:
        """The payload through all links; ``client.bound`` is how long it can be before the first."""
        packed = Packed(sent, bound=client.bound)
        for place, link in enumerate(self.links):
            one = link.pack(packed.tensors, replace(self._of(place, client), bound=packed.bound))
            state, aside = within(str(place), one.state), within(str(place), one.aside)
            packed = Packed(one.tensors, {**packed.state, **state}, {**packed.aside, **aside}, one.bound)
        return packed

    def beside(self, extras: Tensors, sensitivity: float | None, client: ClientContext) -> Tensors:
        """What other parts send, through all links."""
        for place, link in enumerate(self.links):
            extras = link.beside(extras, sensitivity, self._of(place, client))
        return extras

    @property
    def changes_what_is_beside(self) -> bool:
        return any(type(link).beside is not Upload.beside for link in self.links)

    def _of(self, place: int, client: ClientContext) -> ClientContext:
        return client.of(name_of(place)).below(SLOT, place)

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

    def aside_spec(self) -> Shapes:
        """Names and shapes of what all links send aside."""
        return {name: spec for place, link in enumerate(self.links) for name, spec in _aside(place, link).items()}

    def unpack(self, came: Tensors, sent: Shapes, task: Task, bank: ModelBank) -> Tensors:
        specs = self.specs(sent, task.prototype, bank)
        for link, spec in zip(reversed(self.links), reversed(specs[:-1]), strict=True):
            came = link.unpack(came, spec, task, bank)
        return came

    def arrives(self, sent: Shapes) -> Shapes:
        for link in self.links:
            sent = link.arrives(sent)
        return sent

    def after_round(self, place: int, view: ServerView, updates: Sequence[Update]) -> Tensors:
        return self.links[place].after_round(view, [update.of(name_of(place)) for update in updates])

    @property
    def remembering(self) -> list[int]:
        """The places of links that learn something of a round's updates."""
        return [place for place, link in enumerate(self.links) if type(link).after_round is not Upload.after_round]

    def as_received(self, predictions: Tensor) -> Tensor:
        for link in self.links:
            predictions = link.as_received(predictions)
        return predictions


def name_of(place: int) -> str:
    """Under which messages, states and memories have what belongs to the link in this place."""
    return f"{SLOT}/{place}"


def _aside(place: int, link: Upload) -> Shapes:
    return within(str(place), link.aside_spec())
