"""Whether the record of a round can be true: numbers where numbers belong, shares from 0 to 1, rounds one by one.

A log from elsewhere may say anything; whoever draws or adds up what it says need not look again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fedfuse.federation.state import PrototypeRecord, RoundRecord

MOST = 1 << 60
"""Of bytes and seconds; more there are not."""
LONGEST_NAME = 100
"""Of a model, which names a file."""
HUGE = 1e300
"""Which no loss and no metric reaches; whole numbers in JSON may have any length."""


def are_sound(records: Sequence[RoundRecord]) -> bool:
    """Rounds from 1 on without a gap, of the same models, each of them possible."""
    return all(
        record.round == place and _is_sound(record) and record.prototypes.keys() == records[0].prototypes.keys()
        for place, record in enumerate(records, start=1)
    )


def _is_sound(record: RoundRecord) -> bool:
    everybody = (record.clients, record.refused, record.screened, record.absent, record.late, record.client_accuracy)
    return (
        type(record.round) is int
        and all(_is_count(number) for number in (record.bytes_up, record.bytes_down))
        and all(_is_count(client) for clients in everybody for client in clients)
        and _is_duration(record.seconds)
        and _are_shares([record.ensemble_accuracy, *record.client_accuracy.values()])
        and _are_numbers([record.training_loss])
        and _are_named(record.ensemble_metrics)
        and _are_texts([*record.joined.values(), *record.prototypes, record.ensemble_choice])
        and all(name.isprintable() and len(name) <= LONGEST_NAME for name in record.prototypes)
        and all(map(_is_sound_prototype, record.prototypes.values()))
        and (record.clock is None or all(map(_is_duration, (record.clock.total, record.clock.seconds))))
    )


def _is_sound_prototype(own: PrototypeRecord) -> bool:
    return (
        _are_shares([own.accuracy, own.accuracy_before_fusion])
        and _are_numbers([own.loss])
        and all(map(_are_named, (own.metrics, own.metrics_before_fusion, own.fusion)))
        and type(own.untaught) is bool
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < MOST


def _is_duration(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < MOST


def _are_numbers(values: Iterable[Any]) -> bool:
    """Finite ones, or None where nothing was measured."""
    return all(value is None or (type(value) in (int, float) and abs(value) < HUGE) for value in values)


def _are_shares(values: Iterable[Any]) -> bool:
    return all(value is None or (type(value) in (int, float) and 0 <= value <= 1) for value in values)


def _are_named(values: Any) -> bool:
    return isinstance(values, Mapping) and _are_texts(values) and _are_numbers(values.values())


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)
