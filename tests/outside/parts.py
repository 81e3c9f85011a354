"""A part of the tutorial for every slot: its address, its values, and where it goes in an experiment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

FEDDF = {"name": "feddf", "fuse": {"distiller": {"steps": 4, "batch_size": 16}}}
TINY = {
    "data": {"name": "blobs", "examples": 150, "validation": 0.15, "public": 0.2},
    "partition": {"kind": "dirichlet", "clients": 4, "alpha": 1.0, "min_examples": 2},
    "models": {"mlp": {"arch": "mlp", "hidden": [6]}},
    "training": {"epochs": 1, "batch_size": 8},
    "federation": {"rounds": 3, "participation": 0.75},
    "compute": {"device": "cpu"},
}


@dataclass(frozen=True)
class Outside:
    """``key`` is where an experiment file has it, and ``wrap`` what that key holds for a value of the part."""

    address: str
    key: str
    values: dict[str, Any] = field(default_factory=dict)
    method: dict[str, Any] | str = "fedavg"
    wrap: Callable[[Any], Any] = lambda value: value
    chooser: str = "kind"

    @property
    def as_file(self) -> dict[str, Any]:
        return {self.chooser: self.address, **self.values}

    def sections(self, part: Any) -> dict[str, Any]:
        """The tiny experiment with the part in its place, as a file or Python would say it."""
        raw: dict[str, Any] = {**TINY, "method": {"name": "fedavg"} if self.method == "fedavg" else self.method}
        *above, last = self.key.split(".")
        node = raw
        for step in above:
            node[step] = dict(node.get(step, {}))
            node = node[step]
        node[last] = self.wrap(part)
        return raw


def listed(value: Any) -> list[Any]:
    return [value]


PARTS = {
    "local": Outside("my_methods:Dynamic", "method.local", {"strength": 0.3}),
    "merge with memory": Outside("my_methods:DynamicMean", "method.merge", {"weighting": "uniform"}),
    "merge": Outside("my_merge:Median", "method.merge"),
    "screen": Outside("my_screen:NotTooFar", "method.screen", {"factor": 1.1}, wrap=listed),
    "scores": Outside("my_scores:Sure", "method.scores", method=FEDDF),
    "teachers": Outside("my_teachers:Halfway", "method.fuse.teachers", {"share": 0.3}, method=FEDDF, wrap=listed),
    "fuse": Outside("my_fuse:KeepBetter", "method.fuse"),
    "upload": Outside("my_upload:EightBits", "method.upload", wrap=listed),
    "protocol": Outside("my_protocol:OwnHead", "method.protocol"),
    "start": Outside("my_start:Small", "method.start", {"factor": 0.2}),
    "partition": Outside("my_partition:Halving", "partition", {"clients": 4}),
    "source": Outside("my_source:Mixtures", "source", {"size": 40}, method=FEDDF),
    "model": Outside("my_model:Narrow", "models", wrap=lambda part: {"mlp": part}, chooser="arch"),
    "optimizer": Outside("my_optimizer:RmsProp", "training.optimizer"),
    "metric": Outside("my_metric:TopTwo", "evaluation.metrics", wrap=listed),
    "engine": Outside("my_engine:LastFirst", "engine"),
}
