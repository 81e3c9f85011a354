"""The value that a checkpoint holds: with it and the config, the next round is determined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from fedfuse.core.messages import Tensors
from fedfuse.core.weights import Weights
from fedfuse.runtime.evaluate import Values


@dataclass(frozen=True)
class PrototypeRecord:
    """One prototype in one round. None where it was not measured."""

    accuracy: float | None = None
    loss: float | None = None
    accuracy_before_fusion: float | None = None
    fusion: Mapping[str, float] = field(default_factory=dict)
    metrics: Values = field(default_factory=dict)
    """What the experiment measures besides accuracy and loss."""
    metrics_before_fusion: Values = field(default_factory=dict)


@dataclass(frozen=True)
class RoundRecord:
    """What is remembered of a finished round."""

    round: int
    clients: tuple[int, ...]
    refused: tuple[int, ...]
    screened: tuple[int, ...]
    bytes_up: int
    bytes_down: int
    training_loss: float | None
    ensemble_accuracy: float | None
    prototypes: Mapping[str, PrototypeRecord]
    seconds: float
    client_accuracy: Mapping[int, float] = field(default_factory=dict)
    """Of the clients' own models, where they were measured."""
    ensemble_metrics: Values = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self, dict_factory=_without_empty_metrics)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> RoundRecord:
        return RoundRecord(
            **{
                **value,
                "clients": tuple(value["clients"]),
                "refused": tuple(value["refused"]),
                "screened": tuple(value["screened"]),
                "client_accuracy": {int(client): accuracy for client, accuracy in value["client_accuracy"].items()},
                "prototypes": {name: PrototypeRecord(**record) for name, record in value["prototypes"].items()},
            }
        )


def _without_empty_metrics(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """An experiment that names no metrics has none in its record."""
    return {name: value for name, value in fields if value or "metrics" not in name}


@dataclass(frozen=True)
class ServerState:
    """Everything the next round needs from the server.

    ``memory`` is what parts keep between rounds, by the part's address (``local``, ``merge/<prototype>``, ``fuse``).
    """

    round: int
    weights: Mapping[str, Weights]
    memory: Mapping[str, Tensors] = field(default_factory=dict)
    history: tuple[RoundRecord, ...] = ()


def all_reached(history: Sequence[RoundRecord], target: float) -> bool:
    """Whether every prototype has had this accuracy in some round."""
    names = history[-1].prototypes if history else ()
    return bool(names) and all(any((r.prototypes[name].accuracy or 0) >= target for r in history) for name in names)


ClientStates = Mapping[int, Tensors]
"""The second value of a checkpoint: what clients keep between their visits."""


@dataclass(frozen=True)
class Snapshot:
    """A whole federation between two rounds."""

    server: ServerState
    clients: ClientStates = field(default_factory=dict)
