"""The commands that start a SuperLink and its SuperNodes: with TLS and node authentication unless told otherwise.

``--insecure`` leaves both out, for trying things out on one machine: anything but a loopback address is refused.

A SuperLink with keys keeps what it knows in a file. Without one, Flower forgets the registered nodes when the SuperLink
ends, and the next one turns them away: every node exits and must be registered and started again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from fedfuse.core.errors import ConfigError
from fedfuse.flower.keys import CA, CERTIFICATE, KEY, LOOPBACK, check_node, check_server, node_key

ANYWHERE = ("0.0.0.0", "::")
"""Addresses to listen on that are nobody's name."""
DATABASE = "superlink.db"
"""Where a SuperLink keeps what it knows, in the folder of its keys."""


def superlink_command(host: str, port: int, keys: Path | None, database: Path | None) -> list[str]:
    """How to start the SuperLink; without ``keys`` insecurely and, unless ``database`` is given, without a memory."""
    command = ["flower-superlink", "--host", host, "--port", str(port), "--disable-runtime-dependency-installation"]
    if keys is None:
        _only_here(host)
        return [*command, "--insecure", *([] if database is None else _database(database))]
    check_server(keys, None if host in ANYWHERE else host)
    files = {"--ssl-ca-certfile": CA, "--ssl-certfile": CERTIFICATE, "--ssl-keyfile": KEY}
    for option, name in files.items():
        command += [option, str(keys / name)]
    return [*command, "--enable-supernode-auth", *_database(database or keys / DATABASE)]


def supernode_command(
    superlink: str, port: int, keys: Path | None, client: int, node_config: Mapping[str, str]
) -> list[str]:
    """How to start the SuperNode of a client; ``port`` is for its own processes, on this machine only."""
    values = {"client": client, **node_config}
    pairs = " ".join(f"{key}={json.dumps(value)}" for key, value in values.items())
    command = ["flower-supernode", "--superlink", superlink, "--host", "127.0.0.1", "--port", str(port)]
    command += ["--node-config", pairs]
    if keys is None:
        _only_here(superlink.rpartition(":")[0])
        return [*command, "--insecure"]
    check_node(keys, client)
    return [
        *command,
        "--root-certificates",
        str(keys / CA),
        "--auth-supernode-private-key",
        str(keys / node_key(client)),
    ]


def connection(address: str, keys: Path) -> str:
    """What ``flwr run`` must know of the SuperLink, for Flower's config.toml."""
    return f'[superlink.fedfuse]\naddress = "{address}"\nroot-certificates = "{(keys / CA).resolve()}"\n'


def _database(path: Path) -> list[str]:
    """The option for this file, which only its owner may read: models and tasks pass through it."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise ConfigError(f"--database {path}: {error.strerror}; name a file that can be written") from None
    return ["--database", str(path.resolve())]


def _only_here(host: str) -> None:
    if host.strip("[]") not in LOOPBACK:
        raise ConfigError(f"--insecure is for this machine alone (127.0.0.1), not for {host}; use --keys")
