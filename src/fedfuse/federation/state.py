"""The value that a checkpoint holds: with it and the config, the next round is determined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, overload

from fedfuse.core.messages import Tensors
from fedfuse.core.weights import Weights
from fedfuse.federation.client_states import ClientStates, HeldStates
from fedfuse.federation.clock.record import ClockRecord
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
    clock: ClockRecord | None = None
    """Simulated time, where the experiment has a clock."""

    @property
    def heard(self) -> set[int]:
        """Whose updates were sound and in time."""
        missed = (*self.clock.late, *self.clock.left) if self.clock else ()
        return set(self.clients).difference(self.refused, missed)

    def to_json(self) -> dict[str, Any]:
        return asdict(self, dict_factory=_without_empty)

    @staticmethod
    def from_event(event: Mapping[str, Any]) -> RoundRecord:
        """As the log has it."""
        return RoundRecord.from_json({key: value for key, value in event.items() if key not in ("event", "time")})

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> RoundRecord:
        return RoundRecord(
            **{
                **value,
                "clients": tuple(value["clients"]),
                "refused": tuple(value["refused"]),
                "screened": tuple(value["screened"]),
                "client_accuracy": {int(client): accuracy for client, accuracy in value["client_accuracy"].items()},
                "clock": ClockRecord.from_json(value["clock"]) if "clock" in value else None,
                "prototypes": {name: PrototypeRecord(**record) for name, record in value["prototypes"].items()},
            }
        )


def _without_empty(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """An experiment that names no metrics, or has no clock, has none in its record."""
    return {name: value for name, value in fields if value or ("metrics" not in name and name != "clock")}


class History(Sequence[RoundRecord]):
    """The records of finished rounds. One more costs the same however many there are: all share one list."""

    def __init__(self, records: Iterable[RoundRecord] = ()) -> None:
        self._shared: list[RoundRecord] = []
        self._length = 0
        self._best: dict[str, float] = {}
        for record in records:
            self._add(record)

    def plus(self, record: RoundRecord) -> History:
        """This history, which stays as it is, and one more round."""
        longer = History()
        longer._shared = self._shared if len(self._shared) == self._length else self._shared[: self._length]
        longer._length, longer._best = self._length, dict(self._best)
        longer._add(record)
        return longer

    def _add(self, record: RoundRecord) -> None:
        self._shared.append(record)
        self._length += 1
        for name, own in record.prototypes.items():
            self._best[name] = max(self._best.get(name, 0.0), own.accuracy or 0.0)

    def all_reached(self, target: float) -> bool:
        """Whether every prototype has had this accuracy in some round."""
        names = self[-1].prototypes if self else ()
        return bool(names) and all(self._best[name] >= target for name in names)

    @overload
    def __getitem__(self, place: int) -> RoundRecord: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[RoundRecord]: ...
    def __getitem__(self, place: int | slice) -> RoundRecord | Sequence[RoundRecord]:
        if isinstance(place, slice):
            return [self._shared[index] for index in range(self._length)[place]]
        return self._shared[range(self._length)[place]]

    def __len__(self) -> int:
        return self._length

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class ServerState:
    """Everything the next round needs from the server.

    ``memory`` is what parts keep between rounds, by the part's address (``local``, ``merge/<prototype>``, ``fuse``).
    """

    round: int
    weights: Mapping[str, Weights]
    memory: Mapping[str, Tensors] = field(default_factory=dict)
    history: History = field(default_factory=History)


@dataclass(frozen=True)
class Snapshot:
    """A whole federation between two rounds."""

    server: ServerState
    clients: ClientStates = field(default_factory=HeldStates)
