"""Flower's SuperExec, which starts a ServerApp for each run, or a ClientApp for each message: a process beside the
SuperLink or SuperNode, started again if it ends.

It proves by a secret, made anew at every start, that it may have the server's or the node's tasks.
"""

from __future__ import annotations

import logging
import os
import pwd
import secrets
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fedfuse.core.errors import ConfigError
from fedfuse.flower.deployment import superexec_command
from fedfuse.flower.parties import FOLDER

logger = logging.getLogger("flwr")
REST = 1.0
"""Seconds until a SuperExec that ended is started again."""


class SuperExec:
    """The SuperExec of a SuperLink, or of a SuperNode (without ``keys``), which has its tasks at ``port``.

    ``user`` is who it and its apps run as, and None who starts it.
    """

    def __init__(self, port: int, keys: Path | None, user: str | None, folder: Path) -> None:
        self.port, self.keys, self.owner = port, keys, _owner(user)
        self.secret, self._content = folder / "superexec", secrets.token_bytes(32)
        self.write_secret()

    def write_secret(self) -> None:
        """Where only the SuperExec's user can read it; temporary folders are tidied up, also while this runs."""
        self.secret.parent.mkdir(mode=0o700, exist_ok=True)
        self.secret.touch(mode=0o600)
        self.secret.write_bytes(self._content)
        if self.owner is not None:
            for path in (self.secret.parent, self.secret):
                os.chown(path, self.owner.pw_uid, self.owner.pw_gid)

    def start(self) -> subprocess.Popen[bytes]:
        """In a session of its own, so that Ctrl-C reaches who started it only, who then ends it."""
        self.write_secret()
        environment, options = dict(os.environ), dict[str, Any]()
        if self.keys is not None:
            environment[FOLDER] = str(self.keys.resolve())
        if self.owner is not None:
            name = self.owner.pw_name
            environment |= {"HOME": self.owner.pw_dir, "USER": name, "LOGNAME": name}
            options = {"user": self.owner.pw_uid, "group": self.owner.pw_gid, "extra_groups": []}
        command = superexec_command(self.port, self.keys, self.secret, os.getpid())
        return subprocess.Popen(command, env=environment, start_new_session=True, **options)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Started, started again when it ends, and ended in the end."""
        process, over = self.start(), threading.Event()

        def watch() -> None:
            nonlocal process
            while True:
                code = process.wait()
                if over.wait(REST):
                    return
                logger.warning("fedfuse: the SuperExec ended with code %s and is started again", code)
                with suppress(OSError):  # too many processes, perhaps: tried again after the next rest
                    process = self.start()

        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            over.set()
            process.terminate()


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
