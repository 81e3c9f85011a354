"""One layer at a time, as FedMA (Wang et al., 2020): match it, freeze it, train the rest, go on to the next.

A network of L weight layers takes L rounds, with the same clients in all of them. In the round of layer l a client

    l = 0   receives a whole model of the architecture's own widths, as merge ``matched`` makes it for this client
    l > 0   receives layer l - 1 as the server matched it, and where its own neurons are in it; installs the layer,
            brings its layer l into that order (zeros for neurons that it had not), holds layers 0 .. l - 1 still
    then    trains what is not held, sends layer l, and keeps its other layers for the next round

With the output layer travel its label counts, by which the server averages that layer class by class. Who misses a
round, or does not count in it, is out until the next L rounds begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar, Literal

import torch

from fedfuse.core.messages import Task, Tensors, Update, of_part
from fedfuse.core.weights import Layout, Weights
from fedfuse.models.chain import Link, carry_over, chain
from fedfuse.parts.claims import counts_within
from fedfuse.parts.context import ClientContext, CombinedPredictions, ServerView
from fedfuse.parts.protocol.base import Carries, ClientResult, Draw, Expected, ExtraLoss, Protocol
from fedfuse.parts.tensor_spec import MOST_EXAMPLES, TensorSpec
from fedfuse.runtime.bank import ModelBank

LATEST, ASSIGNMENT = "matched", "assignment"
"""What comes down: the tensors of the layer that was matched last, and the place of each own neuron in it."""
COUNTS = "label_counts"
"""What goes up with the output layer."""
ANSWERED, LATELY = "answered", "answered_round"


class LayerByLayer(Protocol):
    """Clients send one layer per round; merge ``matched`` joins them."""

    kind: Literal["layers"] = "layers"
    payload_of: ClassVar[Literal["examples", "model"]] = "model"
    sends_extras: ClassVar[bool] = True
    carries: ClassVar[Carries] = "layer"

    def participants(self, view: ServerView, drawn: Draw) -> Mapping[int, str]:
        stage = stage_of(view.round, view.bank)
        chosen = drawn(view.round - stage)
        if stage == 0:
            return chosen
        lately = int(view.memory.get(LATELY, torch.tensor(0))) == view.round - 1
        present = set(view.memory[ANSWERED].tolist()) if lately else set()
        return {c: p for c, p in chosen.items() if c in present and stage < len(_links(view.bank, p))}

    def sends_weights(self, view: ServerView, client: int) -> bool:
        return stage_of(view.round, view.bank) == 0

    def begin(self, task: Task, state: Tensors, bank: ModelBank) -> Weights:
        stage, links = stage_of(task.round, bank), _links(bank, task.prototype)
        if stage == 0:
            return task.weights
        matching = task.of("merge").extras
        tensors = {**state, **of_part(LATEST, matching)}
        matched, link = tensors[links[stage - 1].weight], links[stage]
        tensors[link.weight] = carry_over(tensors[link.weight], matching[ASSIGNMENT].long(), len(matched), link.block)
        return _weights(tensors, [name for name, _ in bank.layout(task.prototype).parameters])

    @contextmanager
    def training(self, client: ClientContext) -> Iterator[ExtraLoss | None]:
        """Hold the layers that were matched."""
        held = _links(client.bank, client.task.prototype)[: stage_of(client.task.round, client.bank)]
        layers = [client.model.get_submodule(link.name) for link in held]
        try:
            for layer in layers:
                layer.requires_grad_(False)
            yield None
        finally:
            for layer in layers:
                layer.requires_grad_(True)

    def answer(self, client: ClientContext, trained: Weights) -> ClientResult:
        stage, links = stage_of(client.task.round, client.bank), _links(client.bank, client.task.prototype)
        layer = _weights(trained, links[stage].names)
        if stage < len(links) - 1:
            return ClientResult(layer, state={name: tensor.clone() for name, tensor in trained.items()})
        return ClientResult(layer, extras={COUNTS: client.examples.label_counts(client.bank.classes)})

    def expects(self, view: ServerView, task: Task) -> Expected:
        stage, links = stage_of(view.round, view.bank), _links(view.bank, task.prototype)
        shapes, link = dict(view.bank.layout(task.prototype).parameters), links[stage]
        if stage > 0:
            rows, _, *kernel = shapes[link.weight]
            matched = task.of("merge").extras[f"{LATEST}/{links[stage - 1].weight}"]
            shapes[link.weight] = (rows, link.block * len(matched), *kernel)
        layout = Layout(tuple((name, shapes[name]) for name in link.names), ())
        counts = TensorSpec((view.bank.classes,), least=0, most=MOST_EXAMPLES)
        return Expected(layout, extras={COUNTS: counts} if stage == len(links) - 1 else {})

    def sensitivity(self) -> float:
        """One example is one of its label."""
        return 1.0

    def in_range(self, extras: Tensors) -> Tensors:
        return {name: counts.clamp_min(0) for name, counts in extras.items()}

    def within_bounds(self, said: Sequence[Tensors], examples: Sequence[int]) -> list[Tensors]:
        return counts_within(said, COUNTS, examples)

    def after_round(
        self, view: ServerView, updates: Sequence[Update], predictions: CombinedPredictions | None
    ) -> Tensors:
        answered = torch.tensor([update.client for update in updates], dtype=torch.long)
        return {ANSWERED: answered, LATELY: torch.tensor(view.round)}


def stage_of(number: int, bank: ModelBank) -> int:
    """Which layer round ``number`` is about; networks with fewer layers wait for the others."""
    return (number - 1) % max(len(_links(bank, prototype)) for prototype in bank.prototypes)


def _links(bank: ModelBank, prototype: str) -> tuple[Link, ...]:
    return chain(bank.network(prototype))


def _weights(tensors: Mapping[str, torch.Tensor], names: Sequence[str]) -> Weights:
    layout = Layout(tuple((name, tuple(tensors[name].shape)) for name in names), ())
    return Weights(torch.cat([tensors[name].reshape(-1) for name in names]), layout)
