"""What comes in by the parties' socket reaches the fleet API and health, however it is written; the operator's, all."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from contextlib import suppress

import pytest
import uvicorn

from fedfuse.flower.gate import LARGEST, Gate
from fedfuse.flower.superlink import WEB


class Behind:
    """An application that answers everything, and remembers what it was asked."""

    def __init__(self):
        self.asked, self.lives = [], []

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            while (message := await receive())["type"] != "lifespan.shutdown":
                self.lives.append(message["type"])
                await send({"type": f"{message['type']}.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        self.asked.append((scope["path"], body))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"in"})


@pytest.fixture
def house():
    """A web server with two sockets, set as the SuperLink's is."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    operator, parties = (listening.getsockname() for listening in sockets)
    behind = Behind()
    behind.gate = Gate(behind, operator)
    server = uvicorn.Server(uvicorn.Config(behind.gate, log_level="critical", **WEB))
    thread = threading.Thread(target=server.run, args=(sockets,), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield behind, operator, parties
    server.should_exit = True
    thread.join(timeout=20)


def ask(address, *requests: bytes) -> list[int]:
    """The status of every answer to these bytes, until as many came or no more do."""
    answer = b""
    with socket.create_connection(address, timeout=2) as connection:
        connection.sendall(b"".join(requests))
        with suppress(TimeoutError, ConnectionResetError):
            while len(statuses(answer)) < len(requests) and (chunk := connection.recv(65536)):
                answer += chunk
                connection.settimeout(0.3)
    return statuses(answer)


def statuses(answer: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3})", answer)]


def post(path: str | bytes, *headers: bytes, body: bytes = b"", host: bytes = b"link") -> bytes:
    path = path.encode() if isinstance(path, str) else path
    lines = [b"POST " + path + b" HTTP/1.1", b"host: " + host, b"content-length: %d" % len(body), *headers]
    return b"\r\n".join([*lines, b"", body])


FORBIDDEN = [
    "/", "/docs", "/openapi.json", "/v1/control/start-run", "/v1/control/register-node", "/v1/runtime/acquire-task",
    "/v1/fleet", "/v1/fleet/", "/v1/responses", "/healthz", "/health/", "/v1/fleet/pull-messages/",
]  # fmt: skip
TRICKS = [
    "//v1/control/list-runs", "/v1/fleet//../control/list-runs", "/v1/fleet/../control/list-runs",
    "/v1/fleet/%2e%2e/control/list-runs", "/v1/fleet/..%2fcontrol/list-runs", "/v1%2fcontrol%2flist-runs",
    "/v1/fleet/%2e%2e%2fcontrol%2flist-runs", "/%76%31/control/list-runs", "/V1/CONTROL/list-runs",
    "/v1/control/list-runs?/v1/fleet/get-run", "/v1/control/list-runs#/v1/fleet/get-run",
    "/v1/control/list-runs;/v1/fleet/get-run", "/v1/fleet/get-run%00/../../control/list-runs",
    "/v1/fleet/get-run%0d%0a", "/v1/fleet/get-run%0a", "/health%20", "/health%0a", "/health/../v1/control/list-runs",
    "http://link/v1/control/list-runs", "https://127.0.0.1:8001/v1/control/list-runs", "\\v1\\control\\list-runs",
    "/v1/fleet\\..\\control\\list-runs", "/./v1/control/list-runs", "/v1/./control/list-runs", "*", "link:443",
    "/v1/fleet/%25%32%65%25%32%65/control/list-runs", "/v1/fleet/\xc0\xae\xc0\xae/control/list-runs",
]  # fmt: skip


@pytest.mark.parametrize("path", ["/health", "/v1/fleet/pull-messages", "/v1/fleet/get-run", "/v1/fleet/get-run?x=1"])
def test_parties_are_let_in_to_the_fleet(house, path):
    behind, _, parties = house
    assert ask(parties, post(path, body=b"hello")) == [200]
    assert behind.asked == [(path.partition("?")[0], b"hello")]


def test_an_encoded_path_is_judged_as_it_will_be_read(house):
    behind, _, parties = house
    assert ask(parties, post("/v1/%66leet/get-run")) == [200]
    assert behind.asked == [("/v1/fleet/get-run", b"")]


def test_nothing_else_is_behind_the_door(house):
    behind, _, parties = house
    for path in [*FORBIDDEN, *TRICKS]:
        assert 200 not in ask(parties, post(path.encode("latin-1"))), path
        assert behind.asked == [], path
    assert ask(parties, post("/docs")) == [403]


def test_everything_is_there_for_the_operator(house):
    behind, operator, _ = house
    for path in FORBIDDEN:
        assert ask(operator, post(path, host=b"127.0.0.1:8001")) == [200]
    assert [path for path, _ in behind.asked] == FORBIDDEN


@pytest.mark.parametrize("host", [b"evil.example", b"evil.example:8001", b"127.0.0.1.evil.example", b"", b"[::1", b"0"])
def test_a_web_page_that_points_its_name_here_is_no_operator(house, host):
    behind, operator, _ = house
    assert ask(operator, post("/v1/control/start-run", host=host)) == [403]
    assert ask(operator, b"POST /v1/control/start-run HTTP/1.0\r\n\r\n") == [403]
    assert behind.asked == []


@pytest.mark.parametrize("host", [b"127.0.0.1:8001", b"localhost", b"LOCALHOST:1", b"[::1]:8001"])
def test_the_operator_may_come_by_a_tunnel(house, host):
    """Whose end has another port, and a loopback name."""
    assert ask(house[1], post("/v1/control/start-run", host=host)) == [200]


@pytest.mark.parametrize(
    "headers",
    [
        [b"host: 127.0.0.1:8001"],
        [b"x-forwarded-for: 127.0.0.1", b"x-forwarded-host: 127.0.0.1:8001", b"x-forwarded-port: 8001"],
        [b"forwarded: for=127.0.0.1;host=127.0.0.1:8001"],
        [b"x-original-url: /health", b"x-rewrite-url: /health", b"x-http-method-override: GET"],
        [b"x-forwarded-prefix: /health"],
        [b"connection: upgrade", b"upgrade: websocket", b"sec-websocket-version: 13", b"sec-websocket-key: YQ=="],
        [b"connection: upgrade, http2-settings", b"upgrade: h2c", b"http2-settings: AAMAAABkAAQAAP__"],
    ],
    ids=lambda headers: headers[-1].partition(b":")[0].decode(),
)
def test_no_header_opens_it(house, headers):
    behind, _, parties = house
    assert 200 not in ask(parties, post("/v1/control/list-runs", *headers))
    assert behind.asked == []


def test_a_second_request_on_the_connection_is_judged_anew(house):
    behind, _, parties = house
    assert ask(parties, post("/health"), post("/v1/control/list-runs")) == [200, 403]
    assert [path for path, _ in behind.asked] == ["/health"]


def test_a_request_hidden_in_anothers_body_is_its_body_or_nothing(house):
    """Two lengths, a length beside chunks, chunks that are none: never a request that was not judged."""
    behind, _, parties = house
    hidden = post("/v1/control/list-runs")
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(hidden), hidden)
    ask(parties, b"POST /health HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" + chunked)
    ask(
        parties, b"POST /health HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n", chunked
    )
    ask(parties, b"POST /health HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\ncontent-length: 5\r\n\r\n" + hidden)
    ask(parties, b"POST /health HTTP/1.1\r\nhost: x\r\ntransfer-encoding: xchunked\r\n\r\n" + hidden)
    ask(parties, b"POST /health HTTP/1.1\r\nhost: x\r\ncontent-length : 3\r\n\r\n" + hidden)
    ask(parties, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    ask(parties, b"GET /v1/control/list-runs\r\n")
    assert {path for path, _ in behind.asked} <= {"/health"}


def test_of_a_stranger_nothing_is_read(house):
    """Who is unknown is told so at once, before a byte of what he announces."""
    behind, operator, parties = house
    behind.gate.known = lambda headers: headers.get("who") == "a friend"
    large = b"POST /v1/fleet/push-object HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % LARGEST
    assert ask(parties, large) == [401]
    assert ask(parties, post("/v1/fleet/get-run", b"who: a friend")) == [200]
    assert ask(parties, post("/health")) == [200]
    assert ask(parties, post("/v1/control/list-runs", b"who: a friend")) == [403]
    assert ask(operator, post("/v1/fleet/get-run", host=b"localhost")) == [200]


@pytest.mark.parametrize("start", [b"POST /", b"POST /health HTTP/1.1\r\nhost: x\r\nendless: "])
def test_an_endless_head_is_cut_off(house, start):
    """Nobody's memory fills while he is not yet known."""
    with socket.create_connection(house[2], timeout=10) as connection:
        connection.sendall(start)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            connection.sendall(b"x" * 100_000_000)


def test_what_is_too_large_is_not_read_to_its_end(house):
    behind, _, parties = house
    assert ask(parties, b"POST /health HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (LARGEST + 1)) == [413]
    assert behind.asked == []


def test_without_a_length_it_ends_at_the_limit():
    """Through the gate alone: chunks that never end."""
    behind, sent = Behind(), 0

    async def endless():
        nonlocal sent
        sent += 8 << 20
        return {"type": "http.request", "body": bytes(8 << 20), "more_body": True}

    async def send(_message): ...

    scope = {"type": "http", "path": "/v1/fleet/push-object", "headers": [], "server": ("10.0.0.1", 8000)}
    asyncio.run(Gate(behind, ("127.0.0.1", 8001))(scope, endless, send))
    assert behind.asked == []
    assert sent <= LARGEST + (8 << 20)


@pytest.mark.parametrize(
    "server", [None, ("0.0.0.0", 8001), ("127.0.0.1", 8000), ("127.0.0.1", None), ["10.0.0.1", 8001]]
)
def test_who_is_not_surely_the_operator_is_a_party(server):
    behind, sent = Behind(), []

    async def receive():
        return {"type": "http.request", "body": b""}

    async def send(message):
        sent.append(message.get("status"))

    scope = {"type": "http", "path": "/v1/control/list-runs", "headers": [], "server": server}
    asyncio.run(Gate(behind, ("127.0.0.1", 8001))(scope, receive, send))
    assert (behind.asked, sent[0]) == ([], 403)


def test_websockets_are_closed():
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "websocket", "path": "/v1/fleet/get-run", "headers": [], "server": ("10.0.0.1", 8000)}
    asyncio.run(Gate(Behind(), ("127.0.0.1", 8001))(scope, None, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_the_application_lives_and_ends_with_the_server(house):
    assert house[0].lives == ["lifespan.startup"]
