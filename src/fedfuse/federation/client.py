"""A client at work: takes a Task, trains on its own examples, answers with an Update and its new state.

What other frameworks make with a client_fn is ``Clients.work``, for every client that this process plays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from fedfuse.core.errors import DataError
from fedfuse.core.messages import TEST_OUTPUTS, Task, Tensors, Update, of_part, within
from fedfuse.core.randomness import Key
from fedfuse.core.weights import NOTHING, Weights
from fedfuse.data import ClientDatasets, Examples, Transform
from fedfuse.federation.recipe import LOCAL, PROTOCOL, SCORES, UPLOAD, Recipe
from fedfuse.parts.context import ClientContext
from fedfuse.parts.local.loop import train
from fedfuse.parts.protocol.base import PREDICTIONS, ClientResult
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.predict import logits_on
from fedfuse.runtime.source import Source
from fedfuse.runtime.training import TrainingSettings


@dataclass(frozen=True)
class Clients:
    """The clients that one process can play: their examples and the resident models they train.

    ``datasets`` gives each client's examples on demand; on a real node there is just its own. ``test_inputs`` are for
    measuring clients' own models, where they can be had.
    """

    datasets: Mapping[int, Examples]
    transform: Transform
    bank: ModelBank
    recipe: Recipe
    source: Source | None
    test_inputs: Source | None
    training: TrainingSettings
    rounds: int
    key: Key

    def examples_of(self, task: Task) -> int:
        """How many examples the answer to a task stands for."""
        datasets, client = self.datasets, task.client
        return datasets.size(client) if isinstance(datasets, ClientDatasets) else len(datasets[client])

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
        protocol, local = self.recipe.protocol, self.recipe.local
        client = self._context(task, state)
        if protocol.distil_before(self._of_protocol(client)):
            client = replace(client, start=Weights.of(client.model, client.start.layout))
        hooks = local.begin(client.of(LOCAL))
        with protocol.training(self._of_protocol(client)) as extra_loss:
            done = train(client, hooks, extra_loss)
        client.model.zero_grad()  # gradients take as much memory as the model, and nobody reads these
        trained = Weights.of(client.model, client.start.layout)
        result = protocol.answer(self._of_protocol(client), trained)
        update = Update(
            round=task.round,
            client=task.client,
            prototype=task.prototype,
            weights=NOTHING,
            examples=len(client.examples),
            extras={**within(LOCAL, hooks.extras()), **within(PROTOCOL, result.extras)},
            metrics=done.metrics,
        )
        kept = {**within(LOCAL, hooks.state()), **within(PROTOCOL, result.state)}
        return self._with_scores(*self._packed(update, kept, result, client), client)

    def _context(self, task: Task, state: Tensors) -> ClientContext:
        begin = self.recipe.protocol.begin(task, of_part(PROTOCOL, state), self.bank)
        start = self.recipe.chain.begin(begin, state)
        key = self.key.child("round", task.round, "client", task.client)
        training = self.training.of(self.key.child("client", task.client), key)
        return ClientContext(
            task=task,
            model=self.bank.lend(task.prototype, start),
            start=start,
            examples=self.datasets[task.client],
            transform=self.transform,
            training=training,
            learning_rate=training.rate(task.round, self.rounds),
            bank=self.bank,
            source=self.source,
            test_inputs=self.test_inputs if TEST_OUTPUTS in task.asks else None,
            received=task.extras,
            state=state,
            key=key,
            common=self.key,
        )

    @cached_property
    def _scored(self) -> Source | None:
        """Of the public inputs, those that scores are about: the same for all clients and rounds."""
        return self.source and self.recipe.scores.inputs(self.source, self.key)

    def _of_protocol(self, client: ClientContext) -> ClientContext:
        """What the protocol is shown."""
        return replace(client.of(PROTOCOL), source=self._scored)

    def _packed(
        self, update: Update, state: Tensors, result: ClientResult, client: ClientContext
    ) -> tuple[Update, Tensors]:
        """With the payload: as it is, or through the links of the upload."""
        if not self.recipe.upload:
            said = {} if result.predictions is None else {PREDICTIONS: result.predictions}
            return replace(update, weights=result.weights, extras={**update.extras, **within(PROTOCOL, said)}), state
        packed = self.recipe.chain.pack(result.payload, client)
        extras = {**update.extras, **within(UPLOAD, packed.tensors)}
        return replace(update, extras=extras), {**state, **within(UPLOAD, packed.state)}

    def _with_scores(self, update: Update, state: Tensors, client: ClientContext) -> tuple[Update, Tensors]:
        """With what the client says of itself, and about the test inputs."""
        asking, own = self.recipe.asking, client.of(SCORES)
        learnt = asking.learnt(own)
        tested = {} if own.test_inputs is None else {PREDICTIONS: logits_on(own.test_inputs, client.model)}
        if own.test_inputs is not None and self.recipe.protocol.carries == "predictions":
            tested |= within(SCORES, self.recipe.scores.say(learnt, own, own.test_inputs))
        extras = {**update.extras, **within(SCORES, asking.said(learnt, own))}
        return replace(update, extras=extras, test_outputs=tested), {**state, **within(SCORES, learnt)}


def _lonely(task: Task) -> str:
    return (
        f"client {task.client} has a batch of one example, which BatchNorm cannot normalise in '{task.prototype}'; "
        "raise training.batch_size or partition.min_examples, or give the model another norm"
    )
