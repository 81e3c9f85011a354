"""Which of several models each node runs: it is asked before its first task, by a message of Flower's type query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.serverapp import Grid

from fedfuse.core.errors import DataError
from fedfuse.flower.failures import why_not
from fedfuse.flower.reading import record_of, word_of
from fedfuse.flower.strategies.replies import leave_out

MODEL, MODELS = "model", "models"
"""What a node says, and what it may say, in the record of settings."""


class Members:
    """The nodes that were heard; where there is one model only, everybody runs it and nobody is asked."""

    def __init__(self, models: Sequence[str], are_several: bool, config: str, timeout: float) -> None:
        self.models, self.config, self.timeout = tuple(models), config, timeout
        self._only = None if are_several else self.models[0]
        self._said: dict[int, str] = {}

    def model_of(self, node: int) -> str:
        """The model that a node runs; a DataError if it has not said so."""
        model = self._only or self._said.get(node)
        if model is None:
            raise DataError("it has not said which model it runs")
        return model

    def models_of(self, server_round: int, nodes: Sequence[int], grid: Grid) -> dict[int, str]:
        """The models of these nodes, once those that never said it were asked; nodes that still do not are missing."""
        if self._only is not None:
            return dict.fromkeys(nodes, self._only)
        if strangers := [node for node in nodes if node not in self._said]:
            self._ask(server_round, strangers, grid)
        return {node: self._said[node] for node in nodes if node in self._said}

    def forget(self, nodes: Iterable[int]) -> None:
        """What these nodes said; they may run something else by now, and are asked again."""
        for node in nodes:
            self._said.pop(node, None)

    def _ask(self, server_round: int, nodes: Sequence[int], grid: Grid) -> None:
        question = RecordDict({self.config: ConfigRecord({MODELS: list(self.models)})})
        messages = [Message(question, message_type=MessageType.QUERY, dst_node_id=node) for node in nodes]
        silent = set(nodes)
        for reply in grid.send_and_receive(messages, timeout=self.timeout):
            node = reply.metadata.src_node_id
            silent.discard(node)
            try:
                self._said[node] = self._read(reply)
            except Exception as error:  # whatever a reply holds, it ends nobody's run
                leave_out(server_round, node, error)
        for node in sorted(silent):
            leave_out(server_round, node, DataError("it was asked which model it runs, and did not answer"))

    def _read(self, reply: Message) -> str:
        if reply.has_error():
            raise DataError(f"it was asked which model it runs, and {why_not(reply.error)}")
        model = word_of(record_of(reply.content, self.config, ConfigRecord), MODEL)
        if model not in self.models:
            raise DataError("the model that it says it runs is none of this strategy's")
        return model
