"""Predictions on public inputs instead of weights: a client's model never leaves it.

Up travel the model's outputs for this round's n public inputs, 4 n K bytes (or few bits each), and once what the
weighting needs. Down travels, where clients digest it, what the server makes of them: 4 n K bytes (or few bits each).

    consensus:           z_j = sum_k w_k z_k(x_j)
    entropy reduction:   z_j <- softmax(z_j / T)        (DS-FL)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import NOTHING
from fedfuse.parts.context import CombinedPredictions, ServerView
from fedfuse.parts.protocol.base import PREDICTIONS, Answer, Carries, Party, Shapes, Trained
from fedfuse.parts.protocol.client_distillation import ClientDistillation
from fedfuse.parts.protocol.kept import MODEL, KeptModel
from fedfuse.parts.protocol.soft_labels import pack, packed_size, unpack
from fedfuse.parts.protocol.testimony import ScoredExchange, keep
from fedfuse.parts.scores import AnyWeighting, ByExamples
from fedfuse.runtime.predict import logits_on
from fedfuse.runtime.source import Source

CONSENSUS, LATEST = "consensus", "consensus_round"


class Predictions(KeptModel, ScoredExchange):
    """Clients send what their models say about the public inputs."""

    kind: Literal["predictions"] = "predictions"
    carries: ClassVar[Carries] = "predictions"
    output: Literal["probabilities", "logits"] = "probabilities"
    weighting: AnyWeighting = Field(default_factory=ByExamples, description="how much each client's answers count")
    inputs: int | None = Field(
        None, ge=2, description="each round is about so many public inputs, drawn at random; all without. FedMD: 5000"
    )
    temperature: float | None = Field(
        None, gt=0, description="entropy reduction of the combined predictions: softmax(z / T). DS-FL: 0.1"
    )
    digest: ClientDistillation | None = Field(
        None, description="how clients learn from what the server makes of all predictions"
    )
    bits_up: int | None = Field(
        None, ge=1, le=8, description="bits of each probability on the way up; 1: only the most probable class (CFD)"
    )
    bits_down: int | None = Field(None, ge=1, le=8, description="the same on the way down")

    @model_validator(mode="after")
    def _bits_are_of_probabilities(self) -> Self:
        if self.output == "logits" and (self.bits_up or self.bits_down):
            raise ValueError("bits_up and bits_down are bits of probabilities, but output is logits")
        return self

    @property
    def needs_student(self) -> bool:
        return self.digest is not None and self.digest.of == "student"

    def public(self, source: Source, common: Key, number: int) -> Source:
        whole = self.weighting.scored(source, common)
        return whole if self.inputs is None else whole.part(self._rows(len(whole), common, number))

    def distil_before(self, party: Party) -> bool:
        if self.digest is None or self.digest.when != "before" or CONSENSUS not in party.task.extras:
            return False
        self.digest.distil_before(party, *self._lesson(party))
        return True

    def extra_loss(self, party: Party) -> Callable[[], Tensor] | None:
        if self.digest is not None and self.digest.when == "along" and CONSENSUS in party.task.extras:
            return self.digest.extra_loss(party, *self._lesson(party))
        return None

    def answer(self, trained: Trained) -> Answer:
        assert trained.source is not None, "checked before round 1"
        public = self.public(trained.source, trained.common, trained.task.round)
        outputs = self._output(logits_on(public, trained.model))
        learnt = self.learnt(trained)
        extras = {PREDICTIONS: outputs if self.bits_up is None else pack(outputs, self.bits_up)}
        extras |= self.testimony(learnt, trained)
        test_outputs = (
            {} if trained.test_inputs is None else self.weighting.testify(learnt, trained, trained.test_inputs)
        )
        return Answer(NOTHING, extras, {MODEL: self._kept(trained), **keep(learnt)}, test_outputs)

    def broadcast(self, view: ServerView, chosen: Mapping[int, str]) -> Mapping[int, Tensors]:
        extractors = super().broadcast(view, chosen)
        taught = {prototype: self._taught(view, prototype) for prototype in dict.fromkeys(chosen.values())}
        return {client: {**taught[prototype], **extractors.get(client, {})} for client, prototype in chosen.items()}

    def update_spec(self, view: ServerView, task: Task) -> Shapes:
        rows, classes = self._size(view), view.bank.classes
        shape = (rows, classes) if self.bits_up is None else (packed_size(self.bits_up, rows, classes),)
        return {PREDICTIONS: shape, **super().update_spec(view, task)}

    def test_outputs(self, inputs: int, classes: int) -> Shapes:
        return {**super().test_outputs(inputs, classes), **self.weighting.update_spec(inputs, classes)}

    def open(self, view: ServerView, update: Update) -> Update:
        update = super().open(view, update)
        if self.bits_up is None:
            return update
        outputs = unpack(update.extras[PREDICTIONS], self.bits_up, self._size(view), view.bank.classes)
        return replace(update, extras={**update.extras, PREDICTIONS: outputs})

    def combine(self, view: ServerView, updates: Sequence[Update], rows: Tensor | None = None) -> CombinedPredictions:
        assert view.source is not None, "checked before round 1"
        about_inputs = tuple(self.weighting.update_spec(0, 0)) if self.weighting.per_input else ()
        if self.inputs is not None:
            asked = self._rows(len(self.weighting.scored(view.source, view.common)), view.common, view.round)
            updates = [_only(update, about_inputs, asked) for update in updates]
        if rows is not None:
            updates = [_only(update, (PREDICTIONS, *about_inputs), rows) for update in updates]
        return self._together(updates)

    def combine_exams(self, updates: Sequence[Update]) -> CombinedPredictions:
        outputs = [self._heard(self._output(update.test_outputs[PREDICTIONS])) for update in updates]
        pairs = zip(updates, outputs, strict=True)
        return self._together([replace(u, extras={**u.extras, **u.test_outputs, PREDICTIONS: o}) for u, o in pairs])

    def after_round(self, view: ServerView, updates: Sequence[Update]) -> Tensors:
        memory = dict(super().after_round(view, updates))
        if self.digest is not None and self.digest.of == "consensus" and view.answers is not None:
            memory |= {CONSENSUS: view.answers.outputs, LATEST: torch.tensor(view.round)}
        return memory

    def _kept(self, trained: Trained) -> Tensor:
        """The model that the client goes on with."""
        if self.digest is not None and self.digest.keep == "digested":
            return trained.began.flat
        return trained.weights.flat

    @property
    def _are_logits(self) -> bool:
        """Whether combined predictions are logits; those with reduced entropy never are."""
        return self.output == "logits" and self.temperature is None

    def _output(self, logits: Tensor) -> Tensor:
        return logits.softmax(dim=1) if self.output == "probabilities" else logits

    def _heard(self, outputs: Tensor) -> Tensor:
        """What would arrive of a client's outputs: on test inputs, students imitate the same few bits."""
        return outputs if self.bits_up is None else unpack(pack(outputs, self.bits_up), self.bits_up, *outputs.shape)

    def _together(self, updates: Sequence[Update]) -> CombinedPredictions:
        """Summed in client order."""
        total = torch.zeros_like(updates[0].extras[PREDICTIONS], dtype=torch.float64)
        for update, weight in zip(updates, self.weighting.weights(updates), strict=True):
            total += weight.double() * update.extras[PREDICTIONS].double()
        mean = total.float()
        reduced = mean if self.temperature is None else (mean / self.temperature).softmax(dim=1)
        return CombinedPredictions(reduced, self._are_logits)

    def _taught(self, view: ServerView, prototype: str) -> Tensors:
        """What the server tells clients of a prototype: predictions for the public inputs of the round before."""
        if self.digest is None or view.round == 1:
            return {}
        if self.digest.of == "student":
            assert view.source is not None, "checked before round 1"
            public = self.public(view.source, view.common, view.round - 1)
            logits = logits_on(public, view.bank.lend(prototype, view.weights[prototype]))
            table = logits if self._are_logits else logits.softmax(dim=1)
        elif int(view.memory.get(LATEST, torch.tensor(0))) == view.round - 1:
            table = view.memory[CONSENSUS]
        else:
            return {}  # nobody was heard in the last round
        return {CONSENSUS: table if self.bits_down is None else pack(table, self.bits_down)}

    def _lesson(self, party: Party) -> tuple[Source, Tensor, bool]:
        """The client's end of ``_taught``."""
        assert party.source is not None, "checked before round 1"
        public = self.public(party.source, party.common, party.task.round - 1)
        table = party.task.extras[CONSENSUS]
        if self.bits_down is not None:
            table = unpack(table, self.bits_down, len(public), party.bank.classes)
        return public, table, self._are_logits

    def _size(self, view: ServerView) -> int:
        assert view.source is not None, "checked before round 1"
        return len(self.public(view.source, view.common, view.round))

    def _rows(self, inputs: int, common: Key, number: int) -> Tensor:
        """Positions of the round's inputs; all parties draw the same."""
        assert self.inputs is not None
        order = torch.randperm(inputs, generator=common.child("round", number, "public inputs").torch())
        return order[: self.inputs].sort().values


def _only(update: Update, names: Sequence[str], rows: Tensor) -> Update:
    """The update with only these rows of the named extras, which have one for every input."""
    return replace(update, extras={**update.extras, **{name: update.extras[name][rows] for name in names}})
