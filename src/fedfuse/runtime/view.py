"""What the server shows to a part of a method when it is that part's turn in a round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from fedfuse.core.messages import Tensors
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.evaluate import Evaluator
from fedfuse.runtime.source import Source

Progress = Callable[[str, int, int], None]
"""Told (what, done, total) during long server work."""


@dataclass(frozen=True)
class ServerView:
    """Read-only surroundings of one part in one round.

    ``weights`` are the prototypes as they were broadcast this round, ``clients_of`` says how many clients of the whole
    federation run each of them (N of the papers, sampled or not). ``memory`` is what this part returned last round
    (empty before the first); it is part of the checkpoint, and nothing else survives a round.
    """

    round: int
    key: Key
    weights: Mapping[str, Weights]
    memory: Tensors
    clients_of: Mapping[str, int]
    bank: ModelBank
    validation: Evaluator | None
    source: Source | None
    answers: Tensor | None = None
    """The clients' predictions on the source, put together, where predictions are what clients send."""
    progress: Progress = field(default=lambda _what, _done, _total: None)
