"""The replies that a stock Flower strategy may average: inspected as those of fedfuse's own nodes are."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

from fedfuse.core.errors import DataError
from fedfuse.federation.inspection import VARIANCE
from fedfuse.flower.failures import why_not
from fedfuse.flower.reading import record_of, tensors_of
from fedfuse.parts.tensor_spec import LARGEST, MOST_EXAMPLES, TensorSpec

logger = logging.getLogger("flwr")


@dataclass(frozen=True)
class Inspector:
    """What replies must bring: one record of arrays like a network's, and one of metrics with a weight."""

    network: Mapping[str, TensorSpec]
    arrays: str
    weight: str

    def sound(self, server_round: int, replies: Iterable[Message], with_arrays: bool = True) -> list[Message]:
        """The replies that can be averaged, by node, with the metrics that all have; the log says why others cannot."""
        kept = []
        for reply in sorted(replies, key=lambda reply: reply.metadata.src_node_id):
            try:
                kept.append((reply, self._checked(reply, with_arrays)))
            except Exception as error:  # whatever a reply holds, it ends nobody's run
                reason = str(error) if isinstance(error, DataError) else f"it cannot be read ({type(error).__name__})"
                node = reply.metadata.src_node_id
                logger.warning("fedfuse: round %s, node %s is left out: %s", server_round, node, reason)
        common = _common([metrics for _, (_, metrics) in kept])
        return [_with(reply, records, metrics, common) for reply, (records, metrics) in kept]

    def _checked(self, reply: Message, with_arrays: bool) -> tuple[dict[str, ArrayRecord], dict[str, Any]]:
        if reply.has_error():
            raise DataError(why_not(reply.error))
        names = list(reply.content.metric_records)
        if len(names) != 1:
            raise DataError("it has not one record of metrics")
        metrics = dict(record_of(reply.content, names[0], MetricRecord))
        weight = metrics.get(self.weight)
        if not isinstance(weight, int | float) or not 0 < weight <= MOST_EXAMPLES:
            raise DataError(f"'{self.weight}' is no number from 1 to {MOST_EXAMPLES}")
        if not with_arrays:
            return {}, metrics
        arrays = record_of(reply.content, self.arrays, ArrayRecord)
        self._check_arrays(arrays)
        return {self.arrays: arrays}, metrics

    def _check_arrays(self, arrays: ArrayRecord) -> None:
        if arrays.keys() != self.network.keys():
            raise DataError("its arrays are not those of the network")
        tensors = tensors_of(arrays)
        for name, spec in self.network.items():
            if fault := spec.fault(tensors[name]):
                raise DataError(f"array '{name}' is {fault}")


def specs_of(state: Mapping[str, Any]) -> dict[str, TensorSpec]:
    """What a network's state must be when it comes from elsewhere."""
    return {
        name: TensorSpec(tensor.shape, tensor.dtype, least=0 if name.endswith(VARIANCE) else None)
        for name, tensor in state.items()
    }


def _common(metrics: list[dict[str, Any]]) -> set[str]:
    """Names of the metrics that all have, with finite numbers and as many of them."""
    sizes = [{name: size for name, value in own.items() if (size := _size(value)) is not None} for own in metrics]
    return {name for name, size in sizes[0].items() if all(own.get(name) == size for own in sizes)} if sizes else set()


def _size(value: Any) -> int | None:
    """How many numbers a metric has, 0 for one that is no list; None if it is not made of finite numbers."""
    numbers = value if isinstance(value, list) else [value]
    is_sound = all(isinstance(one, int | float) and -LARGEST <= one <= LARGEST for one in numbers)
    return (len(value) if isinstance(value, list) else 0) if is_sound else None


def _with(reply: Message, arrays: dict[str, ArrayRecord], metrics: dict[str, Any], common: set[str]) -> Message:
    shared = MetricRecord({name: value for name, value in metrics.items() if name in common})
    return Message(RecordDict({**arrays, "metrics": shared}), metadata=reply.metadata)
