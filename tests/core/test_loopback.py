"""Pages for this machine: what is served, to whom, and what is refused."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack

import pytest

from fedfuse.core.errors import ConfigError
from fedfuse.core.loopback import AT_ONCE, Page, serve


def fail() -> Page:
    raise RuntimeError("/home/somebody/secret.csv")


PAGES = {"/": lambda: Page("<p>hello</p>"), "/metrics": lambda: Page("rounds 3\n", "text/plain"), "/bad": fail}


@pytest.fixture
def port():
    with serve("127.0.0.1:0", PAGES) as url:
        yield int(url.rpartition(":")[2].strip("/"))


def ask(port: int, request: str) -> str:
    """Raw, because a client of good manners would not say such things."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(request.encode("latin-1"))
        answer = b""
        while block := connection.recv(65536):
            answer += block
    return answer.decode()


def get(port: int, path: str = "/", host: str = "127.0.0.1", method: str = "GET") -> str:
    return ask(port, f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")


def test_pages_are_made_anew_for_each_request():
    counted = iter(range(9))
    with serve("127.0.0.1:0", {"/": lambda: Page(f"round {next(counted)}", "text/plain")}) as url:
        port = int(url.rpartition(":")[2].strip("/"))
        assert [get(port).rpartition("\r\n")[2] for _ in range(2)] == ["round 0", "round 1"]


def test_what_a_page_says(port):
    answer = get(port, "/metrics?since=yesterday")
    assert answer.startswith("HTTP/1.0 200")
    assert "Content-Type: text/plain; charset=utf-8" in answer
    assert "Content-Security-Policy: default-src 'none'" in answer
    assert answer.endswith("rounds 3\n")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:9200", "LOCALHOST", "[::1]:9200"])
def test_this_machines_own_names(port, host):
    assert get(port, host=host).startswith("HTTP/1.0 200")


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:9200", "", "[::1", "0.0.0.0", "a@127.0.0.1@b"]
)
def test_a_name_from_elsewhere_is_refused(port, host):
    """A web page whose name was made to point here could else read what the node does."""
    answer = get(port, host=host)
    assert answer.startswith("HTTP/1.0 403")
    assert "hello" not in answer


def test_two_names_or_none_are_refused(port):
    assert ask(port, "GET / HTTP/1.0\r\n\r\n").startswith("HTTP/1.0 403")
    both = "GET / HTTP/1.0\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n"
    assert ask(port, both).startswith("HTTP/1.0 403")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "<script>"])
def test_read_only(port, method):
    answer = get(port, method=method)
    assert answer.startswith("HTTP/1.0 501")
    assert method not in answer


@pytest.mark.parametrize("path", ["/other", "/../etc/passwd", "/%2e%2e", "http://127.0.0.1/"])
def test_nothing_else_is_there(port, path):
    assert get(port, path).startswith("HTTP/1.0 404")


def test_a_page_that_fails_does_not_say_why(port):
    answer = get(port, "/bad")
    assert answer.startswith("HTTP/1.0 500")
    assert "secret" not in answer
    assert get(port).startswith("HTTP/1.0 200")


@pytest.mark.parametrize("request_", ["\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET " + "x" * 70000])
def test_noise_is_survived(port, request_):
    ask(port, request_ + "\r\n\r\n")
    assert get(port).startswith("HTTP/1.0 200")


def test_who_is_silent_does_not_keep_others_out(port, monkeypatch):
    """At most a few hold a place, and not for long."""
    monkeypatch.setattr("fedfuse.core.loopback._Request.timeout", 0.2)
    with ExitStack() as silent:
        for _ in range(3 * AT_ONCE):
            silent.enter_context(socket.create_connection(("127.0.0.1", port)))
        deadline = threading.Event()
        for _ in range(100):
            try:
                if get(port).startswith("HTTP/1.0 200"):
                    return
            except ConnectionError:
                pass
            deadline.wait(0.1)
    pytest.fail("nobody was served again")


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("0.0.0.0:9200", "this machine alone"),
        ("192.168.0.7:9200", "this machine alone"),
        (":9200", "this machine alone"),
        ("9200", "this machine alone"),
        ("127.0.0.1:", "whole number"),
        ("127.0.0.1:70000", "whole number"),
        ("127.0.0.1:²", "whole number"),
    ],
)
def test_other_addresses_are_refused(address, reason):
    with pytest.raises(ConfigError, match=reason), serve(address, PAGES):
        pass


def test_a_port_that_is_taken(port):
    with pytest.raises(ConfigError, match="choose another port"), serve(f"127.0.0.1:{port}", PAGES):
        pass


def test_the_port_is_free_afterwards():
    with serve("127.0.0.1:0", PAGES) as url:
        address = url.removeprefix("http://").strip("/")
    with serve(address, PAGES):
        pass
