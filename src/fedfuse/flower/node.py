"""A party's side: a Flower ClientApp that plays one client of a fedfuse experiment.

A node says by its node config which client it is, and what it wants to differ in:

    client       its number, from 0 (in Flower's simulation its partition-id)
    prototype    the model it trains, one of the experiment's models; without it the server decides
    state        the folder in which it keeps its client's state (default: fedfuse/ in Flower's own folder)
"""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from fedfuse.core.errors import ConfigError, DataError, unknown
from fedfuse.flower.memory import Memory
from fedfuse.flower.party import LoadData, NodeConfig, clients_of, settings_of
from fedfuse.flower.records import (
    CLIENT,
    CONFIG,
    EXAMPLES,
    PROTOTYPE,
    Report,
    order_from_records,
    report_to_records,
)
from fedfuse.flower.versions import FORMAT, OURS, foreign

logger = logging.getLogger("flwr")


def client_app(experiment: str | Path, load_data: LoadData = lambda _node_config: None) -> ClientApp:
    """The ClientApp of an experiment file, with the party's data from ``load_data``."""
    node = _Node(experiment, load_data)
    app = ClientApp()
    app.query()(node.describe)
    app.train()(node.train)
    return app


@dataclass(frozen=True)
class _Node:
    """The two things that a node is asked: who it is, and to work."""

    experiment: str | Path
    load_data: LoadData

    def describe(self, message: Message, context: Context) -> Message:
        if reason := foreign(message.content.get(CONFIG)):
            logger.warning("fedfuse: the server will not let this node take part: %s", reason)
        config, client = settings_of(self.experiment, context.run_config), _client(context.node_config)
        clients = clients_of(config, client, self.load_data(context.node_config))
        about: dict[str, Any] = {FORMAT: OURS, CLIENT: client, EXAMPLES: len(clients.datasets[client])}
        prototype = context.node_config.get("prototype")
        if prototype is not None:
            if prototype not in config.models:
                raise ConfigError(f"node config: {unknown('prototype', str(prototype), config.models)}")
            about[PROTOTYPE] = str(prototype)
        return Message(RecordDict({CONFIG: ConfigRecord(about)}), reply_to=message)

    def train(self, message: Message, context: Context) -> Message:
        order, client = order_from_records(message.content), _client(context.node_config)
        if order.task.client != client:
            raise ConfigError(f"this node is client {client}, but the task is for client {order.task.client}")
        config = settings_of(self.experiment, context.run_config)
        folder = _state_folder(context.node_config, order.experiment, client)
        every = config.federation.checkpoint_every
        memory = Memory(folder, 1 if every == "auto" else every)  # the server of nodes saves every round
        clients = clients_of(config, client, self.load_data(context.node_config))
        update, state = clients.work(order.task, memory.recall(order.goes_on_from))
        if state:
            memory.store(order.task.round, order.goes_on_from, state)
        return Message(report_to_records(Report(update, keeps_state=bool(state))), reply_to=message)


def _client(node_config: NodeConfig) -> int:
    number = node_config.get("client", node_config.get("partition-id"))
    if not isinstance(number, int) or number < 0:
        raise ConfigError("say which client this node is, for example --node-config 'client=0'")
    return number


def _state_folder(node_config: NodeConfig, experiment: str, client: int) -> Path:
    if not re.fullmatch(r"[0-9a-f]{64}", experiment):
        raise DataError("the task does not name its experiment")
    flower = Path(os.environ.get("FLWR_HOME") or Path.home() / ".flwr")
    return Path(str(node_config.get("state", flower / "fedfuse"))).expanduser() / experiment[:16] / f"client-{client}"
