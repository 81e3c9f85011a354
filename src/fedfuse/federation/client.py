"""A client at work: takes a Task, trains on its own examples, answers with an Update and its new state.

What other frameworks make with a client_fn is ``Clients.work``, for every client that this process plays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from fedfuse.core.errors import DataError
from fedfuse.core.messages import TEST_OUTPUTS, Task, Tensors, Update, of_part, within
from fedfuse.core.randomness import Key
from fedfuse.core.weights import NOTHING, Weights
from fedfuse.data import Examples, Transform
from fedfuse.federation.recipe import LOCAL, PROTOCOL, SCORES, UPLOAD, Recipe
from fedfuse.federation.stacking import Stacking
from fedfuse.parts.context import ClientContext
from fedfuse.parts.local.loop import train
from fedfuse.parts.local.objective import Hooks
from fedfuse.parts.local.stacked import Trained, train_stacked
from fedfuse.parts.local.steps import LoopStats
from fedfuse.parts.protocol.base import PREDICTIONS, ClientResult
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.predict import logits_on
from fedfuse.runtime.source import Source
from fedfuse.runtime.training import TrainingSettings
from fedfuse.runtime.twins import Stack


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
    together: int = 1
    """How many clients a round has."""

    def work(self, task: Task, state: Tensors) -> tuple[Update, Tensors]:
        """Train for one task. The result depends on the arguments and the key only."""
        [result] = self.work_together([task], {task.client: state})
        return result

    def groups(self, tasks: Sequence[Task]) -> list[list[Task]]:
        """Tasks that are done together; no result depends on it."""
        return self._stacking.groups(tasks)

    def work_together(self, tasks: Sequence[Task], states: Mapping[int, Tensors]) -> list[tuple[Update, Tensors]]:
        """Train for the tasks of one group."""
        with self.bank.compute.at_work():
            stack = self._stacking.stack(tasks[0])
            if stack is None:
                return [self._alone(task, states.get(task.client, {})) for task in tasks]
            return self._stacked(tasks, states, stack)

    @cached_property
    def _stacking(self) -> Stacking:
        return Stacking(self.datasets, self.bank, self.recipe, self.training, self.together)

    def _alone(self, task: Task, state: Tensors) -> tuple[Update, Tensors]:
        with _named(task):
            client = self._context(task, state)
            hooks = self.recipe.local.begin(client.of(LOCAL))
            with self.recipe.protocol.training(self._of_protocol(client)) as extra_loss:
                done = train(client, hooks, extra_loss)
            return self._answer(client, hooks, done, Weights.of(client.model, client.start.layout))

    def _stacked(
        self, tasks: Sequence[Task], states: Mapping[int, Tensors], stack: Stack
    ) -> list[tuple[Update, Tensors]]:
        """As ``_alone``, but for the loop, which trains all at a time in the places of a stack."""
        clients, hooks = [], []
        for task in tasks:
            with _named(task):
                clients.append(self._context(task, states.get(task.client, {})))
        clients = _placed(clients, self.bank, stack)
        for client in clients:
            with _named(client.task):
                hooks.append(self.recipe.local.begin(client.of(LOCAL)))
        try:
            trained = train_stacked(clients, hooks, stack)
        except Exception:
            if len(tasks) == 1:
                with _named(tasks[0]):
                    raise
            return [self._stacked([task], states, stack)[0] for task in tasks]  # whoever fails names itself
        return [self._after(*one) for one in zip(clients, hooks, trained, strict=True)]

    def _after(self, client: ClientContext, hooks: Hooks, trained: Trained) -> tuple[Update, Tensors]:
        """Out of the stack: what follows is asked of a network by itself."""
        with _named(client.task):
            model = self.bank.lend(client.task.prototype, trained.weights)
            return self._answer(replace(client, model=model, bank=self.bank), hooks, trained.stats, trained.weights)

    def _answer(self, client: ClientContext, hooks: Hooks, done: LoopStats, trained: Weights) -> tuple[Update, Tensors]:
        task, result = client.task, self.recipe.protocol.answer(self._of_protocol(client), trained)
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
        """The client with its first weights, and what it learnt from the server before it turns to its own examples."""
        begin = self.recipe.protocol.begin(task, of_part(PROTOCOL, state), self.bank)
        start = self.recipe.chain.begin(begin, state)
        key = self.key.child("round", task.round, "client", task.client)
        training = self.training.of(self.key.child("client", task.client), key)
        client = ClientContext(
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
        if self.recipe.protocol.distil_before(self._of_protocol(client)):
            return replace(client, start=Weights.of(client.model, client.start.layout))
        return client

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


def _placed(clients: Sequence[ClientContext], bank: ModelBank, stack: Stack) -> list[ClientContext]:
    """The clients in the places of a stack, which hold their first weights; places that nobody has hold zeros."""
    rows = torch.zeros(stack.twin.size, stack.twin.layout.size)
    rows[: len(clients)] = torch.stack([client.start.flat for client in clients])
    stack.twin.write(rows)
    return [replace(client, model=stack.twin.places[n], bank=bank.beside(n)) for n, client in enumerate(clients)]


@contextmanager
def _named(task: Task) -> Iterator[None]:
    """An error says in whose work it came up."""
    try:
        yield
    except Exception as error:
        if "more than 1 value per channel" in str(error):  # torch's words for it
            raise DataError(_lonely(task)) from None
        error.add_note(f"while client {task.client} trained '{task.prototype}' in round {task.round}")
        raise


def _lonely(task: Task) -> str:
    return (
        f"client {task.client} has a batch of one example, which BatchNorm cannot normalise in '{task.prototype}'; "
        "raise training.batch_size or partition.min_examples, or give the model another norm"
    )
