"""The commands that start a SuperLink, its SuperExec and SuperNodes: with TLS and node authentication by default.

``--insecure`` leaves both out, for trying things out on one machine: anything but a loopback address is refused.

A SuperLink with keys keeps what it knows in a file. Without one, Flower forgets the registered nodes when the SuperLink
ends, and the next one turns them away: every node exits and must be registered and started again.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from fedfuse.core.errors import ConfigError, FedfuseError
from fedfuse.flower.certificates import LOOPBACK
from fedfuse.flower.keys import CA, CERTIFICATE, KEY, check_node, check_server, node_key

ANYWHERE = ("0.0.0.0", "::")
"""Addresses to listen on that are nobody's name."""
OPERATOR = "127.0.0.1"
"""Where a SuperLink answers its operator, and a SuperNode its own processes: nowhere but on their own machine."""
DATABASE = "superlink.db"
"""Where a SuperLink keeps what it knows, in the folder of its keys."""


def superlink_command(
    host: str, operator_port: int, keys: Path | None, database: Path | None, secret: Path
) -> list[str]:
    """How to start Flower's SuperLink for the operator, once ``host``, where parties will reach it, is looked at.

    Without ``keys`` insecurely and, unless ``database`` is given, without a memory; ``secret`` is the SuperExec's.
    """
    command = ["flower-superlink", "--host", OPERATOR, "--port", str(operator_port)]
    command += ["--disable-runtime-dependency-installation"]
    command += with_secret(secret)
    if keys is None:
        _only_here(host)
        return [*command, "--insecure", *([] if database is None else _database(database))]
    check_server(keys, None if host in ANYWHERE else host)
    files = {"--ssl-ca-certfile": CA, "--ssl-certfile": CERTIFICATE, "--ssl-keyfile": KEY}
    for option, name in files.items():
        command += [option, str(keys / name)]
    return [*command, "--enable-supernode-auth", *_database(database or keys / DATABASE)]


def with_secret(secret: Path) -> list[str]:
    """Options of a SuperLink or SuperNode that gives its tasks to who knows the secret, and starts no SuperExec."""
    return ["--isolation", "process", "--superexec-auth-secret-file", str(secret)]


def superexec_command(port: int, keys: Path | None, secret: Path, parent: int) -> list[str]:
    """How to start the SuperExec, which starts ServerApps or ClientApps and ends with the process ``parent``.

    ``port`` is the one at which that process gives out tasks, over TLS with ``keys``.
    """
    command = [_program("flower-superexec"), "--runtime-api-address", f"{OPERATOR}:{port}"]
    command += ["--superexec-auth-secret-file", str(secret), "--parent-pid", str(parent)]
    return [*command, *(["--insecure"] if keys is None else ["--root-certificates", str((keys / CA).resolve())])]


def supernode_command(
    superlink: str,
    port: int,
    keys: Path | None,
    client: int,
    node_config: Mapping[str, str | float],
    accepted: Collection[str],
    wait: float = 0,
) -> list[str]:
    """How to start the SuperNode of a client, which runs ``accepted`` apps and asks for ``wait`` seconds to be let in;
    ``port`` is for its own processes only."""
    values = {"client": client, **node_config}
    pairs = " ".join(f"{key}={json.dumps(value)}" for key, value in values.items())
    command = [sys.executable, "-m", "fedfuse.flower.supernode", ",".join(accepted), str(wait), str(port)]
    command += ["--superlink", superlink, "--node-config", pairs]
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


def _program(name: str) -> str:
    """Flower's own command, which is beside this Python."""
    program = Path(sys.executable).parent / name
    if not program.exists():
        raise FedfuseError(f"{program} is not there; pip install 'fedfuse[flower]' in this environment")
    return str(program)


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
