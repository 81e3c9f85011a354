"""A SuperLink behind the gate, with the SuperExec that starts its ServerApps: one command, ended as one.

Flower believes that it serves the operator's loopback address alone. The parties' address is a second socket of the
same web server, with the gate in between. The SuperExec proves by a secret, made anew at every start, that it may have
the server's tasks.
"""

from __future__ import annotations

import logging
import os
import pwd
import secrets
import signal
import socket
import subprocess
import sys
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
from fedfuse.flower.deployment import OPERATOR, superexec_command, superlink_command
from fedfuse.flower.flower_version import check_version
from fedfuse.flower.gate import Gate, Known
from fedfuse.flower.parties import FOLDER

flower = import_module("flwr.superlink.cli.flower_superlink")  # beside a function of the same name
logger = logging.getLogger("flwr")
REST = 1.0
"""Seconds until a SuperExec that ended is started again."""


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
    owner = _owner(link.user)
    with TemporaryDirectory(prefix="fedfuse-superlink-") as folder:
        secret = Path(folder) / "superexec"
        secret.write_bytes(secrets.token_bytes(32))
        secret.chmod(0o600)
        if owner is not None:
            for path in (Path(folder), secret):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        command = superlink_command(link.host, link.operator_port, link.keys, link.database, secret)
        sockets = [_listen(OPERATOR, link.operator_port), _listen(link.host, link.port)]
        signal.signal(signal.SIGTERM, _leave)
        with _kept_running(lambda: _start_superexec(link, secret, owner)), suppress(KeyboardInterrupt):
            _run_flower(command, sockets)


def _run_flower(command: Sequence[str], sockets: list[socket.socket]) -> None:
    def run(app: Any, **options: Any) -> None:
        options = {key: options[key] for key in ("access_log", "log_config", "ssl_keyfile", "ssl_certfile")}
        gate = Gate(app, sockets[0].getsockname(), known_to(app) if app.state.enable_supernode_auth else None)
        logger.info("fedfuse: the operator's address is %s, the parties' is %s", *map(_address, sockets))
        config = uvicorn.Config(gate, **options, ws="none", proxy_headers=False, server_header=False)
        uvicorn.Server(config).run(sockets)

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
        except (KeyError, ValueError, HTTPException):
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


def _start_superexec(link: SuperLink, secret: Path, owner: pwd.struct_passwd | None) -> subprocess.Popen[bytes]:
    """In a session of its own, so that Ctrl-C reaches the SuperLink only, which then ends it."""
    environment = dict(os.environ)
    if link.keys is not None:
        environment[FOLDER] = str(link.keys.resolve())
    options: Mapping[str, Any] = {}
    if owner is not None:
        environment |= {"HOME": owner.pw_dir, "USER": owner.pw_name, "LOGNAME": owner.pw_name}
        options = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    command = superexec_command(link.operator_port, link.keys, secret, os.getpid())
    return subprocess.Popen(command, env=environment, start_new_session=True, **options)


@contextmanager
def _kept_running(start: Callable[[], subprocess.Popen[bytes]]) -> Iterator[None]:
    """A process that is started again when it ends, and ended in the end."""
    process, over = start(), threading.Event()

    def watch() -> None:
        nonlocal process
        while True:
            code = process.wait()
            if over.wait(REST):
                return
            logger.warning("fedfuse: the SuperExec ended with code %s and is started again", code)
            process = start()

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()
        process.terminate()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(f"cannot listen on {host}, port {port}: {error.strerror}") from None


def _owner(user: str | None) -> pwd.struct_passwd | None:
    if user is None:
        return None
    try:
        owner = pwd.getpwnam(user)
    except KeyError:
        raise ConfigError(f"--app-user {user}: this machine has no such user") from None
    if os.geteuid() != 0:
        raise ConfigError("--app-user needs a SuperLink that is started by root, who may start processes of others")
    return owner


def _address(listening: socket.socket) -> str:
    return "{}:{}".format(*listening.getsockname())


def _leave(*_: object) -> NoReturn:
    sys.exit(0)
