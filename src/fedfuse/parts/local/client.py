"""A client at work: takes a Task, trains on its own examples, answers with an Update and its new state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fedfuse.core.errors import DataError
from fedfuse.core.messages import TEST_OUTPUTS, Task, Tensors, Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.data import Examples, Transform
from fedfuse.parts.local.loop import train
from fedfuse.parts.local.objective import Objective, Visit
from fedfuse.parts.local.settings import TrainingSettings
from fedfuse.parts.protocol import Exchange, Party, Trained
from fedfuse.parts.protocol.base import PREDICTIONS
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.predict import logits_on
from fedfuse.runtime.source import Source


@dataclass(frozen=True)
class Clients:
    """The clients that one process can play: their examples and the resident models they train.

    ``datasets`` gives each client's examples on demand; on a real node there is just its own. ``test_inputs`` are for
    measuring clients' own models, where they can be had.
    """

    datasets: Mapping[int, Examples]
    transform: Transform
    bank: ModelBank
    objective: Objective
    exchange: Exchange
    source: Source | None
    test_inputs: Source | None
    training: TrainingSettings
    rounds: int
    key: Key

    def work(self, task: Task, state: Tensors) -> tuple[Update, Tensors]:
        """Train for one task. The result depends on the arguments and the key only."""
        try:
            with self.bank.compute.at_work():
                return self._train(task, state)
        except Exception as error:
            if "more than 1 value per channel" in str(error):  # torch's words for it
                raise DataError(_lonely(task)) from None
            error.add_note(f"while client {task.client} trained '{task.prototype}' in round {task.round}")
            raise

    def _train(self, task: Task, state: Tensors) -> tuple[Update, Tensors]:
        examples = self.datasets[task.client]
        begin = self.exchange.begin(task, state, self.bank)
        model = self.bank.lend(task.prototype, begin)
        key = self.key.child("round", task.round, "client", task.client)
        test_inputs = self.test_inputs if TEST_OUTPUTS in task.asks else None
        party = Party(task, model, examples, self.transform, self.bank, self.source, test_inputs, state, key, self.key)
        began = Weights.of(model, begin.layout) if self.exchange.distil_before(party) else begin
        training = self.training.of(self.key.child("client", task.client), key)
        rate = training.rate(task.round, self.rounds)
        visit = Visit(task, model, examples, training, rate, state, self.bank, key)
        hooks = self.objective.begin(visit)
        with self.exchange.training(party):
            done = train(visit, hooks, self.transform, self.bank.compute, self.exchange.extra_loss(party))
        trained = Trained(**vars(party), began=began, weights=Weights.of(model, begin.layout))
        answer = self.exchange.answer(trained)
        said = {} if test_inputs is None else {PREDICTIONS: logits_on(test_inputs, model), **answer.test_outputs}
        update = Update(
            round=task.round,
            client=task.client,
            prototype=task.prototype,
            weights=answer.weights,
            examples=len(examples),
            extras={**hooks.extras(), **answer.extras},
            metrics=done.metrics,
            test_outputs=said,
        )
        return update, {**hooks.state(), **answer.state}


def _lonely(task: Task) -> str:
    return (
        f"client {task.client} has a batch of one example, which BatchNorm cannot normalise in '{task.prototype}'; "
        "raise training.batch_size or partition.min_examples, or give the model another norm"
    )
