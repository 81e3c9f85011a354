"""A SuperLink behind the gate, with the SuperExec that starts its ServerApps: one command, ended as one.

Flower believes that it serves the operator's loopback address alone. The parties' address is a second socket of the
same web server, with the gate in between.
"""

from __future__ import annotations

import logging
import signal
import socket
import sys
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, NoReturn

import uvicorn
from fastapi import HTTPException
from flwr.proto.fleet_pb2 import ActivateNodeRequest
from flwr.supercore.constant import FLEET_HTTP_PUBLIC_KEY_HEADER
from flwr.superlink.routers.fleet.node_auth import authenticate_node
from flwr.superlink.servicer.fleet import fleet_handlers

from fedfuse.core.errors import ConfigError
from fedfuse.flower.deployment import OPERATOR, superlink_command
from fedfuse.flower.flower_version import check_version
from fedfuse.flower.gate import Gate, Known
from fedfuse.flower.superexec import SuperExec

flower: Any = import_module("flwr.superlink.cli.flower_superlink")  # beside a function of the same name
logger = logging.getLogger("flwr")
LAST_WORDS = 5
"""Seconds in which requests may end after the SuperLink was told to; connections that stay open would keep it up."""
WEB = {
    "http": "h11",
    "ws": "none",
    "proxy_headers": False,
    "server_header": False,
    "timeout_graceful_shutdown": LAST_WORDS,
}
"""How the web server is set: the parser that puts an end to endless heads, no websockets, no word of a caller's about
where a request comes from."""


@dataclass(frozen=True)
class SuperLink:
    """What a SuperLink is started with; ``user`` is who its ServerApps run as, and None who starts it."""

    host: str
    port: int
    operator_port: int
    keys: Path | None
    database: Path | None
    user: str | None = None


def serve(link: SuperLink) -> None:
    """Serve until this process is told to end."""
    check_version()
    with TemporaryDirectory(prefix="fedfuse-superlink-", ignore_cleanup_errors=True) as folder:
        superexec = SuperExec(link.operator_port, link.keys, link.user, Path(folder))
        command = superlink_command(link.host, link.operator_port, link.keys, link.database, superexec.secret)
        sockets = [_listen(OPERATOR, link.operator_port), _listen(link.host, link.port)]
        signal.signal(signal.SIGTERM, _leave)
        with superexec.running(), suppress(KeyboardInterrupt):
            _run_flower(command, sockets)


def _run_flower(command: Sequence[str], sockets: list[socket.socket]) -> None:
    def run(app: Any, **options: Any) -> None:
        options = {key: options[key] for key in ("access_log", "log_config", "ssl_keyfile", "ssl_certfile")}
        gate = Gate(app, sockets[0].getsockname(), known_to(app) if app.state.enable_supernode_auth else None)
        logger.info("fedfuse: the operator's address is %s, the parties' is %s", *map(_address, sockets))
        uvicorn.Server(uvicorn.Config(gate, **options, **WEB)).run(sockets)

    flower.uvicorn = SimpleNamespace(run=run)
    fleet_handlers.push_messages = own_answers(fleet_handlers.push_messages)
    sys.argv = list(command)
    flower.flower_superlink()


def known_to(app: Any) -> Known:
    """Whether a request is signed by a registered key, by Flower's own rules, before any of its body is read."""

    def known(headers: Mapping[str, str]) -> bool:
        try:
            key = b64decode(headers[FLEET_HTTP_PUBLIC_KEY_HEADER], validate=True)
            claim = SimpleNamespace(protobuf_request=ActivateNodeRequest(public_key=key))
            authenticate_node(SimpleNamespace(headers=headers, state=claim))
        except Exception:  # whatever the words of a stranger make of Flower's check, he stays one
            return False
        return app.state.linkstate_factory.state().get_node_id_by_public_key(key) is not None

    return known


def own_answers(push: Callable[..., Any]) -> Callable[..., Any]:
    """Flower's function that takes a node's answers, for those that the node gives in its own name."""

    def push_own(request: Any, state: Any) -> Any:
        if any(message.metadata.src_node_id != request.node.node_id for message in request.messages_list):
            raise HTTPException(403, "an answer in another node's name")
        return push(request=request, state=state)

    return push_own


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"cannot listen on {host}, port {port}: {getattr(error, 'strerror', error)}") from None


def _address(listening: socket.socket) -> str:
    return "{}:{}".format(*listening.getsockname())


def _leave(*_: object) -> NoReturn:
    sys.exit(0)
