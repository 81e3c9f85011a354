"""The SuperLink's front door: parties reach Flower's fleet API and its health, and nothing else.

Flower serves three APIs on one port and asks only the fleet's callers who they are. Whoever reaches the control API
starts runs, whoever reaches the runtime API becomes the server. Here they are reached by the operator's own socket, on
the loopback address, and by no other; nor by a web page there whose name was made to point to this machine.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from fedfuse.core.loopback import are_of_this_machine

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]
Known = Callable[[Mapping[str, str]], bool]
"""Whether the headers of a request prove that a registered node sent it."""

HEALTH, FLEET = "/health", re.compile(r"/v1/fleet/[a-z]+(-[a-z]+)*")
"""Every path that is passed on, as the application behind will read it."""
FIRST = "/v1/fleet/activate-node"
"""A node's first word. It ends silently at a 401, and says the reason of any other refusal."""
LARGEST = 64 << 20
"""Bytes of one request; Flower sends large arrays in pieces of 5 MB."""
ELSEWHERE = "parties reach the fleet API here and nothing else; operators use the SuperLink's own machine"
REBOUND = "the operator's address is for this machine alone, by the name 127.0.0.1 or localhost"
UNKNOWN = "this key is not registered at the SuperLink; its operator does so with fedfuse flower register"


class Gate:
    """An ASGI application around Flower's, which decides by the socket through which a request came.

    Flower reads a request before it asks who sent it; with ``known``, nothing of a stranger's is read.
    """

    def __init__(self, application: Application, operator: tuple[str, int], known: Known | None = None) -> None:
        self.application, self.operator, self.known = application, operator, known

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.application(scope, receive, send)
        elif self._is_the_operators(scope):
            if are_of_this_machine(_values(scope, b"host")):
                await self.application(scope, receive, send)
            else:
                await _refuse(send, 403, REBOUND)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["path"] != HEALTH and not FLEET.fullmatch(scope["path"]):
            await _refuse(send, 403, ELSEWHERE)
        elif scope["path"] != HEALTH and not await self._is_known(scope):
            await _refuse(send, 404 if scope["path"] == FIRST else 401, UNKNOWN)
        elif _announced(scope) > LARGEST:
            await _refuse(send, 413, "too large")
        else:
            await self.application(scope, _at_most(LARGEST, receive), send)

    def _is_the_operators(self, scope: Message) -> bool:
        """By this side's end of the connection, which no caller chooses."""
        server = scope.get("server")
        return server is not None and tuple(server) == self.operator

    async def _is_known(self, scope: Message) -> bool:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        return self.known is None or await asyncio.to_thread(self.known, headers)


async def _refuse(send: Send, status: int, sentence: str) -> None:
    """In the form in which Flower's nodes and commands look for a reason."""
    body = json.dumps({"code": status, "detail": sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})


def _announced(scope: Message) -> int:
    lengths = _values(scope, b"content-length")
    return max((int(value) if value.isdecimal() else LARGEST + 1 for value in lengths), default=0)


def _values(scope: Message, header: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == header]


def _at_most(limit: int, receive: Receive) -> Receive:
    """What comes in, up to the limit; whoever sends more is gone."""
    left = limit

    async def measured() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        return message if left >= 0 else {"type": "http.disconnect"}

    return measured
