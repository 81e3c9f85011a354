"""What every kind of source is made of: where it is opened, how it is thinned out, and what it is checked for."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.copies import copies
from fedfuse.core.errors import ConfigError
from fedfuse.core.part import Part
from fedfuse.core.randomness import Key
from fedfuse.data import Examples, Transform
from fedfuse.data.dataset import Selection, kind_of
from fedfuse.data.readers.contents import Columns
from fedfuse.data.tokens import Tokenizer
from fedfuse.runtime.compute import Compute
from fedfuse.runtime.source import Source


@dataclass(frozen=True)
class Surroundings:
    """What a source may need to know of the experiment it serves."""

    public: Examples
    clients: Examples | Selection
    transform: Transform
    compute: Compute
    key: Key
    classes: int
    reads_labels: bool = False
    """Whether a part of the method reads the inputs' true labels."""
    tokenizer: Tokenizer | None = None
    """What makes numbers of texts, if the clients have texts."""
    test: Examples | None = None
    """What the result is measured on, which a source had better not hold."""
    columns: Columns | None = None
    """Those of the clients' table, if they have one, and what they become."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.clients.shape


class SourceSettings(Part):
    """The base of all sources."""

    kind: str

    @property
    def is_fresh(self) -> bool:
        """Whether every step of a distillation has inputs of its own."""
        return False

    @property
    def needs_teachers(self) -> bool:
        """Whether its inputs are made in a round, from the round's teachers; before that there are none."""
        return False

    @abstractmethod
    def open(self, surroundings: Surroundings) -> Source:
        """Bring the inputs into memory and check that the models can read them."""


class FiniteSource(SourceSettings):
    """A source of inputs that are there already, so that a part of them can be taken."""

    fraction: float = Field(1.0, gt=0, le=1, description="a seeded random share of the inputs (FedDF Fig. 6)")
    limit: int | None = Field(None, ge=1, description="at most this many inputs, drawn at random")

    def part_of(self, inputs: Tensor, key: Key) -> Tensor:
        """As many inputs as ``fraction`` and ``limit`` allow, the same ones for the same key; or all in their order."""
        number = min(round(self.fraction * len(inputs)), self.limit or len(inputs))
        if number == len(inputs):
            return inputs
        return inputs[torch.randperm(len(inputs), generator=key.torch())[:number]]


def refuse_texts(kind: str, surroundings: Surroundings) -> None:
    """For sources whose inputs are made of continuous numbers."""
    if surroundings.clients.kind == "texts":
        raise ConfigError(f"source {kind} cannot make texts; use held_out, dataset or folder")


def check_classes(classes: tuple[int, ...], known: int, owner: str) -> None:
    wrong = [label for label in classes if not 0 <= label < known]
    if wrong:
        raise ConfigError(f"source.classes names {wrong[0]}, but {owner} has classes 0 to {known - 1}")


def make_source(
    name: str,
    raw: Tensor,
    transform: Transform,
    surroundings: Surroundings,
    remedy: str = "choose another source",
    labels: Tensor | None = None,
    incomplete: str | None = None,
) -> Source:
    """The source, unless the models cannot read it; ``remedy`` says what to do about inputs of another shape."""
    kind, needed = kind_of(raw), surroundings.clients.kind
    if "texts" in (kind, needed) and kind != needed:
        raise ConfigError(f"source '{name}' has {kind}, but the clients' models read {needed}; choose another source")
    if tuple(raw.shape[1:]) != surroundings.shape:
        raise ConfigError(
            f"source '{name}' has inputs of shape {_times(raw.shape[1:])}, but the clients' models read "
            f"{_times(surroundings.shape)}; {remedy}"
        )
    if len(raw) < 2:
        raise ConfigError(f"source '{name}' has {len(raw)} input(s); distillation needs at least 2")
    overlap = _overlap(raw, surroundings.clients)
    test_overlap = 0 if surroundings.test is None else _overlap(raw, surroundings.test)
    known = _true_labels(name, labels, surroundings.classes) if surroundings.reads_labels else None
    return Source(
        name, raw, transform, surroundings.compute, overlap, known, incomplete=incomplete, test_overlap=test_overlap
    )


def _true_labels(name: str, labels: Tensor | None, classes: int) -> Tensor:
    if labels is None or int(labels.max()) >= classes:
        raise ConfigError(
            f"this method reads the true labels of the public inputs, but source '{name}' has not those of the task; "
            "use source held_out"
        )
    return labels


def _overlap(raw: Tensor, others: Examples | Selection) -> int:
    """How many source inputs are exact copies of others."""
    return 0 if kind_of(raw) != others.kind else copies(raw.numpy(), (block.numpy() for block in others.blocks()))


def _times(shape: tuple[int, ...]) -> str:
    return "x".join(str(n) for n in shape)
