"""What the server shows to a part of a method when it is that part's turn in a round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from fedfuse.core.messages import Tensors, Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.batch_norm import reestimate
from fedfuse.runtime.evaluate import Evaluator
from fedfuse.runtime.pool import IN_PROCESS, Pool, Progress, silence
from fedfuse.runtime.source import Source


@dataclass(frozen=True)
class CombinedPredictions:
    """The clients' predictions for a set of inputs, put together; probabilities need not sum to one (FedED's w1)."""

    outputs: Tensor
    are_logits: bool

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
    answers: CombinedPredictions | None = None
    """Where predictions are what clients send."""
    combine: Callable[[Sequence[Update], Tensor], CombinedPredictions | None] | None = None
    """How answers are made: of some clients, about some rows of the public inputs."""
    shares: Sequence[Tensor] = ()
    """How much each client's predictions count on the source, where clients testified to it."""
    progress: Progress = silence
    pool: Pool = IN_PROCESS
    """Who does the heavy work of this round."""

    def reestimated(self, prototype: str, weights: Weights) -> Weights:
        """The weights with BatchNorm statistics that were computed anew on the public inputs."""
        assert self.source is not None, "checked before round 1"
        model = self.bank.lend(prototype, weights)
        reestimate(model, self.source)
        return Weights.of(model, weights.layout)
