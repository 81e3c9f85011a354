"""The value that a checkpoint holds: with it and the config, the next round is determined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, overload

from fedfuse.core.messages import Tensors
from fedfuse.core.weights import Weights
from fedfuse.federation.accounting import PrivacyRecord
from fedfuse.federation.client_states import ClientStates, HeldStates
from fedfuse.federation.clock.record import ClockRecord
from fedfuse.runtime.evaluate import Values

SELDOM = {
    "metrics", "metrics_before_fusion", "ensemble_metrics", "validation", "ensemble_validation", "clock", "joined",
    "untaught", "ensemble_choice", "claims_bounded", "moves_bounded", "privacy",
}  # fmt: skip
"""What is in a record only if there is something to say; so are ``absent`` and ``late``, which a clock has always."""


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
    validation: Values = field(default_factory=dict)
    """Accuracy, loss and metrics on the validation examples, where the experiment measures them."""
    untaught: bool = False
    """Whether the server's model of it came out of the round as it went in."""


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
    ensemble_validation: Values = field(default_factory=dict)
    clock: ClockRecord | None = None
    """Simulated time, where the experiment has a clock."""
    absent: tuple[int, ...] = ()
    """Who was not there, and was sent nothing."""
    late: tuple[int, ...] = ()
    """Who did not answer in time."""
    joined: Mapping[int, str] = field(default_factory=dict)
    """Who was never heard before and runs another model than was planned."""
    claims_bounded: tuple[int, ...] = ()
    """Whose claims about itself counted for less than it said."""
    moves_bounded: tuple[int, ...] = ()
    """Whose update counted as a shorter one."""
    ensemble_choice: str = ""
    """Which ensemble taught, and why, where the method chose one (``fuse.target: auto``)."""
    privacy: PrivacyRecord | None = None
    """What all rounds so far have given away, where a promise is kept about it."""

    @property
    def heard(self) -> set[int]:
        """Whose updates were sound and in time."""
        return set(self.clients).difference(self.refused, self.absent, self.late)

    def to_json(self) -> dict[str, Any]:
        whole = asdict(self, dict_factory=_without_empty)
        return {name: value for name, value in whole.items() if value or name not in ("absent", "late")}

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
                "absent": tuple(value.get("absent", ())),
                "claims_bounded": tuple(value.get("claims_bounded", ())),
                "moves_bounded": tuple(value.get("moves_bounded", ())),
                "late": tuple(value.get("late", _late_by_the_clock(value))),
                "joined": {int(client): name for client, name in value.get("joined", {}).items()},
                "client_accuracy": {int(client): accuracy for client, accuracy in value["client_accuracy"].items()},
                "clock": ClockRecord.from_json(value["clock"]) if "clock" in value else None,
                "privacy": PrivacyRecord(**value["privacy"]) if "privacy" in value else None,
                "prototypes": {name: PrototypeRecord(**record) for name, record in value["prototypes"].items()},
            }
        )


def _without_empty(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in fields if value or name not in SELDOM}


def _late_by_the_clock(record: Mapping[str, Any]) -> tuple[int, ...]:
    """Records of older versions have these in the clock's part only."""
    clock = record.get("clock") or {"late": (), "left": ()}
    return tuple(sorted((*clock["late"], *clock["left"])))


class History(Sequence[RoundRecord]):
    """The records of finished rounds. One more costs the same however many there are: all share one list."""

    def __init__(self, records: Iterable[RoundRecord] = ()) -> None:
        self._shared: list[RoundRecord] = []
        self._length = 0
        self._best: dict[str, float] = {}
        self._joined: dict[int, str] = {}
        self._claiming: set[int] = set()
        self._moving: set[int] = set()
        for record in records:
            self._add(record)

    @property
    def joined(self) -> Mapping[int, str]:
        """Of all clients that run another model than was planned, the one they run."""
        return self._joined

    @property
    def claims_bounded(self) -> set[int]:
        """Whose claims were bounded in any round."""
        return self._claiming

    @property
    def moves_bounded(self) -> set[int]:
        """Whose moves were bounded in any round."""
        return self._moving

    def plus(self, record: RoundRecord) -> History:
        """This history, which stays as it is, and one more round."""
        longer = History()
        longer._shared = self._shared if len(self._shared) == self._length else self._shared[: self._length]
        longer._length, longer._best, longer._joined = self._length, dict(self._best), dict(self._joined)
        longer._claiming, longer._moving = set(self._claiming), set(self._moving)
        longer._add(record)
        return longer

    def _add(self, record: RoundRecord) -> None:
        self._shared.append(record)
        self._length += 1
        self._joined |= record.joined
        self._claiming |= set(record.claims_bounded)
        self._moving |= set(record.moves_bounded)
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
