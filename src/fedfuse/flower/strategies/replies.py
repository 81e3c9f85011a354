"""The replies that a stock Flower strategy may use: inspected as those of fedfuse's own nodes are."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from torch import Tensor

from fedfuse.core.errors import DataError
from fedfuse.flower.failures import why_not
from fedfuse.flower.reading import record_of, tensors_of
from fedfuse.flower.strategies.network import Network
from fedfuse.parts.tensor_spec import LARGEST, MOST_EXAMPLES

logger = logging.getLogger("flwr")


@dataclass(frozen=True)
class Reply:
    """A sound one: the message with what Flower may average of it, the network that it is about, and its tensors."""

    message: Message
    model: str
    examples: float
    tensors: Mapping[str, Tensor]

    @property
    def node(self) -> int:
        node: int = self.message.metadata.src_node_id
        return node


@dataclass(frozen=True)
class Inspector:
    """What replies must bring: one record of arrays like a network's, and one of metrics with a weight."""

    networks: Mapping[str, Network]
    model_of: Callable[[int], str]
    """The network that a node runs; a DataError if nobody knows."""
    arrays: str
    weight: str

    def sound(self, server_round: int, replies: Iterable[Message], with_arrays: bool = True) -> list[Reply]:
        """The sound replies, by node, with the metrics that all have; the log says why others are left out."""
        kept: list[Reply] = []
        for reply in sorted(replies, key=lambda reply: reply.metadata.src_node_id):
            try:
                kept.append(self._checked(reply, with_arrays))
            except Exception as error:  # whatever a reply holds, it ends nobody's run
                leave_out(server_round, reply.metadata.src_node_id, error)
        common = _common([_metrics(one.message) for one in kept])
        return [replace(one, message=_with(one.message, common)) for one in kept]

    def _checked(self, reply: Message, with_arrays: bool) -> Reply:
        if reply.has_error():
            raise DataError(why_not(reply.error))
        names = list(reply.content.metric_records)
        if len(names) != 1:
            raise DataError("it has not one record of metrics")
        metrics = record_of(reply.content, names[0], MetricRecord)
        weight = dict(metrics).get(self.weight)
        if not isinstance(weight, int | float) or not 0 < weight <= MOST_EXAMPLES:
            raise DataError(f"'{self.weight}' is no number from 1 to {MOST_EXAMPLES}")
        model, tensors, arrays = self.model_of(reply.metadata.src_node_id), dict[str, Tensor](), {}
        if with_arrays:
            if weight != int(weight):
                raise DataError(f"'{self.weight}' is no whole number")
            arrays = {self.arrays: record_of(reply.content, self.arrays, ArrayRecord)}
            tensors = tensors_of(arrays[self.arrays])
            self.networks[model].check(tensors)
        content = RecordDict({**arrays, "metrics": metrics})
        return Reply(Message(content, metadata=reply.metadata), model, weight, tensors)


def leave_out(server_round: int, node: int, error: Exception) -> None:
    """Say in the log why a node's reply is not used."""
    reason = str(error) if isinstance(error, DataError) else f"it cannot be read ({type(error).__name__})"
    logger.warning("fedfuse: round %s, node %s is left out: %s", server_round, node, reason)


def _metrics(message: Message) -> dict[str, Any]:
    return dict(message.content["metrics"])


def _common(metrics: list[dict[str, Any]]) -> set[str]:
    """Names of the metrics that all have, with finite numbers and as many of them."""
    sizes = [{name: size for name, value in own.items() if (size := _size(value)) is not None} for own in metrics]
    return {name for name, size in sizes[0].items() if all(own.get(name) == size for own in sizes)} if sizes else set()


def _size(value: Any) -> int | None:
    """How many numbers a metric has, 0 for one that is no list; None if it is not made of finite numbers."""
    numbers = value if isinstance(value, list) else [value]
    is_sound = all(isinstance(one, int | float) and -LARGEST <= one <= LARGEST for one in numbers)
    return (len(value) if isinstance(value, list) else 0) if is_sound else None


def _with(message: Message, common: set[str]) -> Message:
    """The message with nothing but these metrics."""
    shared = MetricRecord({name: value for name, value in _metrics(message).items() if name in common})
    return Message(RecordDict({**message.content.array_records, "metrics": shared}), metadata=message.metadata)
