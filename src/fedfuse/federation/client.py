"""A client at work: takes a Task, trains on its own examples, answers with an Update and its new state.

What other frameworks make with a client_fn is ``Clients.work``, for every client that this process plays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial

import torch
from torch import Tensor

from fedfuse.core.errors import DataError
from fedfuse.core.messages import TEST_OUTPUTS, Task, Tensors, Update, of_part, within
from fedfuse.core.randomness import Key
from fedfuse.core.weights import NOTHING, Weights
from fedfuse.data import ClientDatasets, Examples, Transform
from fedfuse.federation.recipe import LOCAL, PROTOCOL, SCORES, UPLOAD, Recipe
from fedfuse.federation.silence import SPEAKS, Silence
from fedfuse.federation.stacking import Stacking
from fedfuse.federation.sums.summation import Summation
from fedfuse.models import Classifier
from fedfuse.models.stacked import Twin
from fedfuse.parts.base import joint_sensitivity
from fedfuse.parts.context import ClientContext
from fedfuse.parts.local.loop import train
from fedfuse.parts.local.objective import Hooks
from fedfuse.parts.local.private_loop import train_privately
from fedfuse.parts.local.stacked import Trained, train_stacked
from fedfuse.parts.local.steps import LoopStats
from fedfuse.parts.protocol.base import PREDICTIONS, ClientResult, Protocol
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
    silence: Silence = SPEAKS
    """What the experiment's promise of privacy leaves unsaid."""
    secret: Key | None = None
    """What noise comes from where somebody could want to compute it: a real party's own."""
    sums: Summation | None = None
    """How updates add up, where the server sees nothing but sums of them."""

    def examples_of(self, task: Task) -> int:
        """How many examples the answer to a task will say that it stands for."""
        return self.size_of(task) if self.silence.tells_examples else 1

    def size_of(self, task: Task) -> int:
        """How many examples a task is done with."""
        datasets, client = self.datasets, task.client
        return datasets.size(client) if isinstance(datasets, ClientDatasets) else len(datasets[client])

    def examples(self, task: Task) -> Examples:
        """What a client trains on."""
        return self.datasets[task.client]

    def work(self, task: Task, state: Tensors) -> tuple[Update, Tensors]:
        """Train for one task. The result depends on the arguments and the key only."""
        [result] = self.work_together([task], {task.client: state})
        return result

    def groups(self, tasks: Sequence[Task]) -> list[list[Task]]:
        """Tasks that are done together; no result depends on it."""
        return self._stacking.groups(tasks)

    def stack_of(self, task: Task) -> int:
        """With how many others a task is done at the same time, in one network; 1: with none."""
        stack = self._stacking.stack(task)
        return 1 if stack is None else stack.twin.size

    def work_together(self, tasks: Sequence[Task], states: Mapping[int, Tensors]) -> list[tuple[Update, Tensors]]:
        """Train for the tasks of one group."""
        with self.bank.compute.at_work():
            stack = self._stacking.stack(tasks[0])
            if stack is None:
                return [self._alone(task, states.get(task.client, {})) for task in tasks]
            return self._stacked(tasks, states, stack)

    @cached_property
    def _stacking(self) -> Stacking:
        return Stacking(self.size_of, self.bank, self.recipe, self.training, self.together)

    def _alone(self, task: Task, state: Tensors) -> tuple[Update, Tensors]:
        with _named(task):
            client = self._context(task, state)
            hooks = self.recipe.local.begin(client.of(LOCAL))
            with self.recipe.protocol.training(self._of_protocol(client)) as extra_loss:
                done = (train if self.training.privacy is None else train_privately)(client, hooks, extra_loss)
            client.model.zero_grad()  # gradients take as much memory as the model, and nobody reads these
            return self._sent(client, hooks, done, Weights.of(client.model, client.start.layout))

    def _stacked(
        self, tasks: Sequence[Task], states: Mapping[int, Tensors], stack: Stack
    ) -> list[tuple[Update, Tensors]]:
        """As ``_alone``, but for the loop, which trains all at a time in the places of a stack."""
        clients, hooks = [], []
        for place, task in enumerate(tasks):
            with _named(task):
                clients.append(self._placed(task, states.get(task.client, {}), stack.twin, place))
        stack.twin.write(_first_weights(clients, stack.twin))
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

    def _placed(self, task: Task, state: Tensors, twin: Twin, place: int) -> ClientContext:
        """A client in a place of a stack."""
        model, bank = twin.places[place], self.bank.beside(place)
        if not self._distils_before:
            return self._begun(task, state, bank, lambda _start: model)
        return replace(self._context(task, state), model=model, bank=bank)

    def _after(self, client: ClientContext, hooks: Hooks, trained: Trained) -> tuple[Update, Tensors]:
        """Out of the stack: what follows is asked of a network by itself."""
        with _named(client.task):
            model = self.bank.lend(client.task.prototype, trained.weights)
            return self._sent(replace(client, model=model, bank=self.bank), hooks, trained.stats, trained.weights)

    def _sent(self, client: ClientContext, hooks: Hooks, done: LoopStats, trained: Weights) -> tuple[Update, Tensors]:
        """The answer as it leaves."""
        update, state = self._answer(client, hooks, done, trained)
        return (update if self.sums is None else self.sums.summand(update, client.task)), state

    def _answer(self, client: ClientContext, hooks: Hooks, done: LoopStats, trained: Weights) -> tuple[Update, Tensors]:
        task, result = client.task, self._result(client, trained)
        kept = {**within(LOCAL, hooks.state()), **within(PROTOCOL, result.state)}
        sent, packed = self._packed(result, client)
        said, learnt, tested = self._scores_of(client)
        extras = {**within(LOCAL, hooks.extras()), **within(PROTOCOL, result.extras), **said}
        update = Update(
            round=task.round,
            client=task.client,
            prototype=task.prototype,
            weights=NOTHING if self.recipe.upload else result.weights,
            examples=len(client.examples) if self.silence.tells_examples else 1,
            extras={**self._protected(extras, client), **sent},
            metrics=done.metrics if self.silence.tells_metrics else {},
            test_outputs=tested,
        )
        return update, {**kept, **packed, **learnt}

    def _result(self, client: ClientContext, trained: Weights) -> ClientResult:
        """What the client sends and keeps, before links pack it."""
        return self.recipe.protocol.answer(self._of_protocol(client), trained)

    def _protected(self, extras: Tensors, client: ClientContext) -> Tensors:
        """What parts say beside the payload, with noise where a link of the upload has some for it."""
        chain = self.recipe.chain
        if not extras or not chain.changes_what_is_beside:
            return extras
        parts = {LOCAL: self.recipe.local, PROTOCOL: self.recipe.protocol, SCORES: self.recipe.scores}
        speaking = {slot: part for slot, part in parts.items() if of_part(slot, extras)}
        noised = chain.beside(extras, joint_sensitivity(speaking.values()), client)
        return {
            name: tensor
            for slot, part in speaking.items()
            for name, tensor in within(slot, part.in_range(of_part(slot, noised))).items()
        }

    def _context(self, task: Task, state: Tensors) -> ClientContext:
        """The client with the weights with which it turns to its own examples; perhaps it learns before that."""
        client = self._begun(task, state, self.bank, partial(self.bank.lend, task.prototype))
        if self._distils_before and self.recipe.protocol.distil_before(self._of_protocol(client)):
            return replace(client, start=Weights.of(client.model, client.start.layout))
        return client

    @cached_property
    def _distils_before(self) -> bool:
        return type(self.recipe.protocol).distil_before is not Protocol.distil_before

    def _begun(
        self, task: Task, state: Tensors, bank: ModelBank, lend: Callable[[Weights], Classifier]
    ) -> ClientContext:
        begin = self.recipe.protocol.begin(task, of_part(PROTOCOL, state), self.bank)
        start = self.recipe.chain.begin(begin, state)
        key = self.key.child("round", task.round, "client", task.client)
        training = self.training.of(self.key.child("client", task.client), key)
        return ClientContext(
            task=task,
            model=lend(start),
            start=start,
            examples=self.examples(task),
            transform=self.transform,
            training=training,
            learning_rate=training.rate(task.round, self.rounds),
            bank=bank,
            source=self.source,
            test_inputs=self.test_inputs if TEST_OUTPUTS in task.asks and self.silence.answers_tests else None,
            received=task.extras,
            state=state,
            key=key,
            common=self.key,
            own_secret=self.secret,
        )

    @cached_property
    def _scored(self) -> Source | None:
        """Of the public inputs, those that scores are about: the same for all clients and rounds."""
        return self.source and self.recipe.scores.inputs(self.source, self.key)

    def _of_protocol(self, client: ClientContext) -> ClientContext:
        """What the protocol is shown."""
        own = client.of(PROTOCOL)
        return own if own.source is self._scored else replace(own, source=self._scored)

    def _packed(self, result: ClientResult, client: ClientContext) -> tuple[Tensors, Tensors]:
        """What travels beside weights, and what is kept by the links that pack the payload, if there are any."""
        if not self.recipe.upload:
            said = {} if result.predictions is None else {PREDICTIONS: result.predictions}
            return within(PROTOCOL, said), {}
        packed = self.recipe.chain.pack(result.payload, replace(client, bound=result.bound))
        return within(UPLOAD, {**packed.tensors, **packed.aside}), within(UPLOAD, packed.state)

    def _scores_of(self, client: ClientContext) -> tuple[Tensors, Tensors, Tensors]:
        """What the client says of itself, what it learnt to say so, and what it says about the test inputs."""
        asking, own = self.recipe.asking, client.of(SCORES)
        learnt = asking.learnt(own)
        tested = {} if own.test_inputs is None else {PREDICTIONS: logits_on(own.test_inputs, client.model)}
        if own.test_inputs is not None and self.recipe.protocol.carries == "predictions":
            tested |= within(SCORES, self.recipe.scores.say(learnt, own, own.test_inputs))
        return within(SCORES, asking.said(learnt, own)), within(SCORES, learnt), tested


def _first_weights(clients: Sequence[ClientContext], twin: Twin) -> Tensor:
    """A row for each place; places that nobody has hold zeros."""
    rows = torch.zeros(twin.size, twin.layout.size)
    for row, client in zip(rows, clients, strict=False):
        row.copy_(client.start.flat)
    return rows


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
