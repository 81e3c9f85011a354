"""Letting parties in and out, on the SuperLink's own machine: its control API answers nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from flwr.proto.control_pb2 import ListNodesRequest, RegisterNodeRequest, UnregisterNodeRequest
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.error import FlowerError
from flwr.supercore.primitives.asymmetric import public_key_to_bytes

from fedfuse.core.errors import ConfigError, FedfuseError
from fedfuse.flower.keys import CA, check_server, fingerprint, read_public
from fedfuse.flower.parties import Parties, Party


def register(folder: Path, public_key: Path, client: int, address: str) -> Party:
    """Let the owner of this key in as this client, in the place of whoever was that client before."""
    check_server(folder, None)
    key, parties = read_public(public_key), Parties(folder)
    mark, content = fingerprint(key), public_key_to_bytes(key)
    with parties.alone(), _control(folder, address) as control:
        known = parties.registered()
        others = [other for other, party in known.items() if party.key == mark and other != client]
        if others:
            raise ConfigError(f"{public_key} is the key of client {others[0]}; every client has a key of its own")
        nodes = control.ListNodes(ListNodesRequest()).nodes_info
        there = {bytes(node.public_key): node.node_id for node in nodes if not node.unregistered_at}
        if content not in there and any(node.public_key == content for node in nodes):
            raise ConfigError(
                f"{public_key} was unregistered, and Flower lets no key in again; the party makes another one with "
                "fedfuse flower key, in another folder"
            )
        node = there.get(content) or control.RegisterNode(RegisterNodeRequest(public_key=content)).node_id
        parties.write({**known, client: Party(node, mark)})
        before = known.get(client)
        if before is not None and before.node != node and before.node in there.values():
            control.UnregisterNode(UnregisterNodeRequest(node_id=before.node))
    return Party(node, mark)


def unregister(folder: Path, client: int, address: str) -> Party:
    """Let this client's key in no longer; its node, if it is connected, ends."""
    check_server(folder, None)
    parties = Parties(folder)
    with parties.alone(), _control(folder, address) as control:
        known = parties.registered()
        if client not in known:
            everybody = ", ".join(map(str, known)) or "nobody"
            raise ConfigError(f"client {client} is not registered; registered: {everybody}")
        nodes = control.ListNodes(ListNodesRequest()).nodes_info
        if known[client].node in {node.node_id for node in nodes if not node.unregistered_at}:
            control.UnregisterNode(UnregisterNodeRequest(node_id=known[client].node))
        parties.write({other: party for other, party in known.items() if other != client})
    return known[client]


@contextmanager
def _control(folder: Path, address: str) -> Iterator[ControlHttpClient]:
    try:
        with ControlHttpClient.from_server_address(address, False, (folder / CA).read_bytes(), []) as client:
            yield client
    except httpx.HTTPStatusError as error:
        said = FlowerError.from_json(error.response.text)
        reason = said.message if said else f"{error.response.status_code} {error.response.reason_phrase}"
        raise FedfuseError(f"the SuperLink at {address} refuses: {reason}") from None
    except httpx.HTTPError as error:
        raise FedfuseError(
            f"no SuperLink answers at {address} ({error}); start it with fedfuse flower superlink, and call this on "
            "the same machine"
        ) from None
