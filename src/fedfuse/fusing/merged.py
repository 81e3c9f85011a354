"""Merges of models of the student's own architecture: weights into weights, by the merges of federations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError
from fedfuse.core.part import first_mistake
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights, mean, shares
from fedfuse.fusing.student import Examiner, StudentInputs
from fedfuse.models.permutations import aligned, units_of
from fedfuse.parts.merge import Aligned, AnyMerge, Merge, ModelMerge, Soup, TrainedModels
from fedfuse.runtime.batch_norm import reestimate
from fedfuse.runtime.evaluate import Score

MERGES: Mapping[str, Mapping[str, Any]] = {
    "average": {"kind": "soup", "form": "uniform"},
    "soup": {"kind": "soup", "form": "greedy"},
    "aligned": {"kind": "aligned"},
    "regmean": {"kind": "regmean"},
    "fisher": {"kind": "fisher"},
    "task_arithmetic": {"kind": "task_arithmetic"},
    "ties": {"kind": "ties"},
    "dare": {"kind": "dare"},
}
"""By what they are called here, with the settings that make them so."""
FROM_BASE = ("task_arithmetic", "ties", "dare")
"""Those that count from the model that all were trained from."""
QUICK = ("average", "soup", "aligned", "regmean")
"""Those that are tried where nobody has asked for one."""
LARGE = ("aligned", "regmean")
"""Those that hold all models at once, or the square of a layer: tried unasked for small models only."""
MOST_NUMBERS = 2**26
"""Of all models together, for these: half a gigabyte in double precision."""


def merge_of(name: str, options: Mapping[str, Any]) -> Merge:
    """The merge with these settings, or one sentence about what is wrong with them."""
    try:
        merge: Merge = TypeAdapter(AnyMerge).validate_python({**MERGES[name], **options})
    except ValidationError as error:
        raise ConfigError(first_mistake(error, "merge", skip=1)) from None
    return merge


@dataclass(frozen=True)
class Alike:
    """Models of one architecture, as weights of one network, and what a merge may ask about them."""

    models: Mapping[str, Weights]
    base: Weights | None
    network: nn.Module
    inputs: StudentInputs | None
    examiner: Examiner | None
    key: Key
    weights: Sequence[float] | None = None
    """How much each counts; all the same if not given."""

    def merged(self, name: str, merge: Merge) -> Weights:
        """One set of weights, with BatchNorm statistics of its own where there are inputs to compute them on."""
        if len(self.models) < 2:
            raise ConfigError(
                f"{name} merges models of one architecture, and only {len(self.models)} can be the student's"
            )
        if name in FROM_BASE and self.base is None:
            raise ConfigError(f"{name} counts from the model that all were trained from; say which is the base")
        if merge.needs_source and self.inputs is None:
            raise ConfigError(f"{name} looks at the models with inputs; give data")
        if isinstance(merge, Soup) and merge.form == "greedy" and self.examiner is None:
            raise ConfigError(f"{name} tastes every average on labelled examples; give some, or choose average")
        return self._settled(self._aligned(merge) if isinstance(merge, Aligned) else self._combined(merge))

    def quick(self) -> Iterator[tuple[str, Weights]]:
        """What can be had without asking anybody anything else; merges that are not for these models are left out."""
        numbers = sum(weights.layout.size for weights in self.models.values())
        for name in (*QUICK, *(FROM_BASE if self.base is not None else ())):
            if name in LARGE and numbers > MOST_NUMBERS:
                continue
            try:
                yield name, self.merged(name, merge_of(name, {}))
            except ConfigError:
                continue

    @property
    def _counts(self) -> list[float]:
        return shares(list(self.weights) if self.weights is not None else [1.0] * len(self.models))

    def _combined(self, merge: Merge) -> Weights:
        assert isinstance(merge, ModelMerge), "all others need a federation"
        first = next(iter(self.models.values()))
        return merge.combine(
            TrainedModels(
                models=list(self.models.values()),
                base=self.base or first,
                shares=self._counts,
                names=list(self.models),
                key=self.key,
                network=self._lent,
                batches=self._batches,
                score=self._score,
            )
        )

    def _aligned(self, merge: Aligned) -> Weights:
        """In the order of the base's hidden units, or of the first model's."""
        first, *_ = self.models.values()
        reference = self.base or first
        example = torch.randn(2, *self._example.shape[1:], generator=Key(0).torch())
        units = units_of(self._lent(first), example).required(merge.partly)
        others = list(self.models.values())
        moved = aligned(units, reference.layout, reference, others, self.key.child("aligned"), merge.iterations)
        return mean(moved, self._counts)

    @property
    def _example(self) -> Tensor:
        if self.inputs is None:
            raise ConfigError("aligned follows inputs through the network; give data")
        prepared = self.inputs.inputs(torch.arange(min(2, len(self.inputs))))
        if not isinstance(prepared, Tensor) or not prepared.is_floating_point():
            raise ConfigError("aligned follows images and numbers through a network, not texts; choose another merge")
        return prepared

    def _lent(self, weights: Weights) -> nn.Module:
        weights.load_into(self.network)
        return self.network.eval()

    def _batches(self, _name: str, most: int) -> Iterator[Any]:
        assert self.inputs is not None, "checked before"
        for where in self.inputs.mixed[:most].split(64):
            yield self.inputs.inputs(where)

    def _score(self, weights: Weights) -> Score:
        assert self.examiner is not None, "checked before"
        return self.examiner.score(self._lent(weights))

    def _settled(self, merged: Weights) -> Weights:
        if not merged.layout.buffers or self.inputs is None:
            return merged
        network = self._lent(merged)
        with self.inputs.compute.at_work():
            reestimate(network, self.inputs)
        return Weights.of(network, merged.layout)
