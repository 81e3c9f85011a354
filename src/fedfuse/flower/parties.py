"""Which node may play which client: a party's number belongs to the key that was registered for it.

Flower gives a node its id when its key is registered, and checks the key of whoever speaks under that id. The file
parties.json beside the SuperLink's keys has the id and the key's fingerprint of every client.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fedfuse.core.errors import ConfigError
from fedfuse.core.files import write_text

PARTIES = "parties.json"
FOLDER = "FEDFUSE_FLOWER_KEYS"
"""The environment variable by which ``fedfuse flower superlink`` tells a ServerApp the folder of its keys."""


@dataclass(frozen=True)
class Party:
    """A client's node at the SuperLink, and the fingerprint of its key."""

    node: int
    key: str


class Parties:
    """The registered parties of a keys folder, as they are now; without a folder everybody may play anybody."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._seen, self._read = (0, 0), dict[int, Party]()

    @classmethod
    def here(cls, environment: Mapping[str, str] = os.environ) -> Parties:
        """Those of the SuperLink that started this process."""
        folder = environment.get(FOLDER)
        return cls(Path(folder) if folder else None)

    def may_play(self, node: int, client: int) -> bool:
        """Whether this node's key was registered for this client."""
        return bool(self.pairs([client], [node]))

    def pairs(self, clients: Sequence[int], nodes: Sequence[int]) -> list[tuple[int, int]]:
        """Some of these clients, each with one of these nodes that may play it."""
        if self.folder is None:
            return list(zip(clients, nodes, strict=False))
        known, present = self.registered(), set(nodes)
        return [(c, known[c].node) for c in clients if c in known and known[c].node in present]

    def registered(self) -> dict[int, Party]:
        """Everybody by client number."""
        try:
            status = self._file.stat()
            if (status.st_ino, status.st_mtime_ns) != self._seen:
                found = json.loads(self._file.read_text(encoding="utf-8"))
                self._read = {int(c): Party(int(about["node"]), str(about["key"])) for c, about in found.items()}
                self._seen = status.st_ino, status.st_mtime_ns
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigError(f"{self._file}: {error.strerror}") from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise ConfigError(f"{self._file} is damaged; delete it and register every party's .pub again") from None
        return self._read

    def write(self, parties: Mapping[int, Party]) -> None:
        """Everybody anew; :meth:`alone` before the others were read."""
        found = {str(client): {"node": party.node, "key": party.key} for client, party in sorted(parties.items())}
        write_text(self._file, json.dumps(found, indent=2) + "\n")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Other processes that change the parties wait until this one is done."""
        descriptor = os.open(self._file.parent, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @property
    def _file(self) -> Path:
        if self.folder is None:
            raise ConfigError("parties are registered in the folder of the SuperLink's keys")
        return self.folder / PARTIES
