"""The SuperLink's front door: parties reach Flower's fleet API and its health, and nothing else.

Flower serves three APIs on one port and asks only the fleet's callers who they are. Whoever reaches the control API
starts runs, whoever reaches the runtime API becomes the server. Here they are reached by the operator's own socket, on
the loopback address, and by no other.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

PUBLIC = re.compile(r"/health|/v1/fleet/[a-z]+(-[a-z]+)*")
"""Every path that is passed on, as the application behind will read it."""
LARGEST = 64 << 20
"""Bytes of one request: Flower sends large arrays in pieces of 5 MB, and reads a request before it asks who sent it."""
SENTENCE = b"Parties reach the fleet API here and nothing else; operators use the SuperLink's own machine.\n"


class Gate:
    """An ASGI application around Flower's, which decides by the socket through which a request came."""

    def __init__(self, application: Application, operator: tuple[str, int]) -> None:
        self.application, self.operator = application, operator

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._is_the_operators(scope):
            await self.application(scope, receive, send)
        elif scope["type"] != "http" or not PUBLIC.fullmatch(scope["path"]):
            await _refuse(scope, send, 403, SENTENCE)
        elif _announced(scope) > LARGEST:
            await _refuse(scope, send, 413, b"Too large.\n")
        else:
            await self.application(scope, _at_most(LARGEST, receive), send)

    def _is_the_operators(self, scope: Message) -> bool:
        """By this side's end of the connection, which no caller chooses."""
        server = scope.get("server")
        return server is not None and tuple(server) == self.operator


async def _refuse(scope: Message, send: Send, status: int, sentence: bytes) -> None:
    if scope["type"] != "http":
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(sentence)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": sentence})


def _announced(scope: Message) -> int:
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    return max((int(value) if value.isdigit() else LARGEST + 1 for value in lengths), default=0)


def _at_most(limit: int, receive: Receive) -> Receive:
    """What comes in, up to the limit; whoever sends more is gone."""
    left = limit

    async def measured() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        return message if left >= 0 else {"type": "http.disconnect"}

    return measured
