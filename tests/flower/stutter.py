"""``fedfuse flower supernode`` that says everything twice: every answer, and the answer before with every new question.

A program of its own, started by tests in place of fedfuse's. The first is what a node does that did not hear that its
answer arrived; the second, a node that answers a question that was answered and done with.
"""

from __future__ import annotations

import sys
from typing import Any

from flwr.supernode.cli import flower_supernode
from flwr.supernode.fleet_http_client import FleetHttpClient

from fedfuse.cli import flower
from fedfuse.cli.app import app

push, pull = FleetHttpClient.PushMessages, FleetHttpClient.PullMessages
said: list[Any] = []


def push_twice(client: FleetHttpClient, request: Any) -> Any:
    said.append(request)
    push(client, request)
    return push(client, request)


def push_again(client: FleetHttpClient, request: Any) -> Any:
    questions = pull(client, request)
    if questions.messages_list and said:
        push(client, said[-1])
        print("said again", flush=True)
    return questions


def become(command: list[str]) -> None:
    """Stay in this process, where the client is bent."""
    sys.argv = command
    flower_supernode()


FleetHttpClient.PushMessages, FleetHttpClient.PullMessages = push_twice, push_again
flower._become = become
app(["flower", *sys.argv[1:]])
