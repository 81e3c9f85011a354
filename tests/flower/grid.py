"""A Flower federation inside one process: real records through real serialisation, handlers called directly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.serverapp import Grid


def travelled(content: RecordDict) -> RecordDict:
    """What arrives of what was sent: bytes in between."""
    sent = recorddict_to_proto(content)
    return recorddict_from_proto(type(sent).FromString(sent.SerializeToString()))


class Node:
    """A ClientApp with its node config, and what may happen to its answers."""

    def __init__(self, app: ClientApp, node_config: Mapping[str, Any], run_config: Mapping[str, Any]) -> None:
        self.app, self.messages = app, []
        self.context = Context(1, 1, dict(node_config), RecordDict(), dict(run_config))
        self.bend: Callable[[Message], list[Message]] = lambda reply: [reply]

    def answer(self, message: Message) -> list[Message]:
        arrived = Message(travelled(message.content), metadata=message.metadata)
        self.messages.append(arrived)
        try:
            reply = self.app(arrived, self.context)
            if reply.has_content():
                reply = Message(travelled(reply.content), metadata=reply.metadata)
        except Exception as error:  # as a SuperNode does
            reply = Message(Error(1, repr(error)), reply_to=arrived)
        return self.bend(reply)


class InProcessGrid(Grid):
    """Nodes by id; replies wait until they are pulled, last asked first answered."""

    def __init__(self, nodes: Mapping[int, Node]) -> None:
        self.nodes = dict(nodes)
        self.waiting: list[Message] = []
        self.sent = 0

    def set_run(self, run: Any) -> None: ...

    @property
    def run(self) -> Any:
        return None

    def create_message(self, *_: Any, **__: Any) -> Message:
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        return list(self.nodes)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        numbers = []
        for message in messages:
            self.sent += 1
            message.metadata.__dict__["_message_id"] = f"message-{self.sent}"
            numbers.append(f"message-{self.sent}")
            self.waiting = self.nodes[message.metadata.dst_node_id].answer(message) + self.waiting
        return numbers

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        asked = set(message_ids)
        found = [message for message in self.waiting if message.metadata.reply_to_message_id in asked]
        self.waiting = [message for message in self.waiting if message not in found]
        return found

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:  # noqa: ARG002
        return self.pull_messages(self.push_messages(messages))


def grid_of(app: ClientApp, clients: int, **node_config: Any) -> InProcessGrid:
    """One node per client; node ids have nothing to do with client numbers."""
    nodes = {100 - client: Node(app, {"client": client, **node_config}, {}) for client in range(clients)}
    return InProcessGrid(nodes)
