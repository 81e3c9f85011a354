"""What a part of a method is shown when it is its turn: the server's view of a round, a client at work on a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from torch import Tensor

from fedfuse.core.messages import Task, Tensors, Update, Value, of_part
from fedfuse.core.randomness import Address, Key
from fedfuse.core.weights import Weights
from fedfuse.data import Examples, Transform
from fedfuse.models import Classifier
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.batch_norm import reestimate
from fedfuse.runtime.evaluate import Evaluator, Score
from fedfuse.runtime.pool import IN_PROCESS, Pool, Progress, silence
from fedfuse.runtime.source import Source
from fedfuse.runtime.training import TrainingSettings

if TYPE_CHECKING:
    from fedfuse.parts.scores.base import Scores


def _unheard(_reason: str) -> None:
    """Where there is no log."""


@dataclass(frozen=True)
class CombinedPredictions:
    """The clients' predictions for a set of inputs, put together; probabilities need not sum to one (FedED's w1)."""

    outputs: Tensor
    are_logits: bool
    answered: Tensor | None = None
    """Whether there is an answer to each input; None: to all of them."""

    def at(self, rows: Tensor) -> CombinedPredictions:
        """Those for some of the inputs, to which there is an answer."""
        return CombinedPredictions(self.outputs[rows], self.are_logits)

    @property
    def log_probabilities(self) -> Tensor:
        return self.outputs.log_softmax(dim=1) if self.are_logits else self.outputs.clamp_min(1e-12).log()


@dataclass(frozen=True)
class ServerView:
    """Read-only surroundings of one part in one round.

    ``weights`` are the prototypes as they were broadcast this round, ``clients_of`` says how many clients of the whole
    federation run each of them (N of the papers, sampled or not), ``visits`` how often each client was heard before.
    ``memory`` is what this part returned last round (empty before the first); it is part of the checkpoint, and nothing
    else survives a round. ``key`` is this part's own in this round, ``common`` the one that all parties share.
    """

    round: int
    key: Key
    common: Key
    weights: Mapping[str, Weights]
    memory: Tensors
    clients_of: Mapping[str, int]
    visits: Mapping[int, int]
    bank: ModelBank
    validation: Evaluator | None
    source: Source | None
    scores: Scores
    """How much each teacher counts."""
    predictions: CombinedPredictions | None = None
    """What the round's teachers say about the public inputs, where predictions are what clients send."""
    combine: Callable[[Sequence[Update], Tensor], CombinedPredictions] | None = None
    """How that is made: of some clients, about some rows of the public inputs."""
    progress: Progress = silence
    weakened: Callable[[str], None] = _unheard
    """Tell the log, in a sentence, that a defence bears less in this round than it should."""
    pool: Pool = IN_PROCESS
    """Who does the heavy work of this round."""

    @property
    def public(self) -> Source:
        """The public inputs, for a part that ``needs_source``."""
        return _there(self.source, "needs_source = True says that it reads public inputs")

    @property
    def said(self) -> CombinedPredictions:
        """What the round's teachers say together, for a fusion that reads predictions."""
        return _there(self.predictions, 'reads = "predictions" says that it reads them')

    def said_by(self, teachers: Sequence[Update], rows: Tensor) -> CombinedPredictions:
        """The same of some teachers, about some of the public inputs."""
        return _there(self.combine, 'reads = "predictions" says that it reads them')(teachers, rows)

    def score(self, prototype: str, weights: Weights) -> Score:
        """How good weights are on the validation split, for a part that checks that there is one."""
        validation = _there(self.validation, "its check should refuse an experiment without validation examples")
        return validation.score(self.bank.lend(prototype, weights))

    def reestimated(self, prototype: str, weights: Weights) -> Weights:
        """The weights with BatchNorm statistics that were computed anew on the public inputs."""
        model = self.bank.lend(prototype, weights)
        reestimate(model, self.public)
        return Weights.of(model, weights.layout)


@dataclass(frozen=True)
class ClientContext:
    """One client at work on one task, with all that a part may look at.

    ``model`` holds the weights as they are now, ``start`` those with which the client turned to its own examples.
    ``received`` is what this part sent from the server, ``state`` what it kept with this client at its last visit
    (empty before): each part has its own. ``bank`` lends further networks under other roles than "student", which is
    ``model``. ``test_inputs`` are there if the task asks to measure the client's own model on them. ``key`` is this
    client's in this round, ``common`` the one that all parties share, the server included. Both can be computed by
    whoever knows the experiment's seed; ``secret`` is what noise comes from that shall hide something.
    """

    task: Task
    model: Classifier
    start: Weights
    examples: Examples
    transform: Transform
    training: TrainingSettings
    learning_rate: float
    bank: ModelBank
    source: Source | None
    test_inputs: Source | None
    received: Tensors
    state: Tensors
    key: Key
    common: Key
    own_secret: Key | None = None
    """What a real party has that nobody else does."""
    bound: float | None = None
    """For links: the longest, in Euclidean norm, that the payload can be which the link before left."""

    @property
    def secret(self) -> Key:
        """The key of what protects the examples: noise, and who is drawn. In a simulation it is ``key``."""
        return self.own_secret or self.key

    def below(self, *address: Address) -> ClientContext:
        """The same client with random numbers for a narrower purpose."""
        own = self.own_secret and self.own_secret.child(*address)
        return replace(self, key=self.key.child(*address), own_secret=own)

    @property
    def public(self) -> Source:
        """The public inputs, for a part that ``needs_source``."""
        return _there(self.source, "needs_source = True says that it reads public inputs")

    def of(self, part: str) -> ClientContext:
        """What one part is shown: of messages and states, its own."""
        if not self.received and not self.state:
            return self
        return replace(self, received=of_part(part, self.received), state=of_part(part, self.state))


def _there(value: Value | None, how: str) -> Value:
    if value is None:
        raise LookupError(f"a part asks for what this experiment does not have; {how}")
    return value
