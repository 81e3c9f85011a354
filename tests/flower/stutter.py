"""``fedfuse flower supernode`` that gives every answer a second time, once it was sent as a whole.

A program of its own, started by tests in place of fedfuse's.
"""

from __future__ import annotations

import sys
from typing import Any

from flwr.supernode.fleet_http_client import FleetHttpClient

from fedfuse.cli import flower
from fedfuse.cli.app import app
from fedfuse.flower import supernode

push, pull = FleetHttpClient.PushMessages, FleetHttpClient.PullMessages
said: list[Any] = []


def push_and_remember(client: FleetHttpClient, request: Any) -> Any:
    said.append(request)
    return push(client, request)


def push_again_and_pull(client: FleetHttpClient, request: Any) -> Any:
    while said:
        push(client, said.pop())
        print("said again", flush=True)
    return pull(client, request)


def become(command: list[str]) -> None:
    """Stay in this process, where the client is bent."""
    supernode.main(command[3:])


FleetHttpClient.PushMessages, FleetHttpClient.PullMessages = push_and_remember, push_again_and_pull
flower._become = become
app(["flower", *sys.argv[1:]])
