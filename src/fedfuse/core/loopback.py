"""A few read-only pages for people and programs on this machine, and for nobody else.

Whoever can reach the port may read: it is bound to a loopback address only. A web page from elsewhere that has its own
name point to this machine (DNS rebinding) is refused by the name that the browser then says.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from fedfuse.core.errors import ConfigError

ADDRESSES = {"127.0.0.1": "127.0.0.1", "localhost": "127.0.0.1", "::1": "::1"}
"""By the names under which this machine knows itself."""
AT_ONCE = 16
"""Requests; more than these are hung up on."""
PATIENCE = 5.0
"""Seconds for a request to be said."""
LOOKING = 0.05
"""Seconds between two looks at whether it is over."""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True)
class Page:
    """What a path shows."""

    text: str
    kind: str = "text/html"
    status: int = 200
    policy: str | None = None
    """What a browser may do for it, if that is more than to show it."""
    tag: str | None = None
    """Another one whenever the text is another; whoever has it already is not sent it again."""


Pages = Mapping[str, Callable[[], Page]]
"""What makes each page, by its path; it is asked anew at every request."""


@contextmanager
def serve(address: str, pages: Pages) -> Iterator[str]:
    """Show the pages at ``127.0.0.1:PORT`` (port 0: a free one) as long as this lasts; gives their http address."""
    host, port = _host_and_port(address)
    try:
        server = _Server(ADDRESSES[host], port, pages)
    except OSError as error:
        raise ConfigError(f"{address}: {error.strerror or error}; choose another port") from None
    thread = threading.Thread(target=server.serve_forever, args=(LOOKING,), name="loopback", daemon=True)
    thread.start()
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if host not in ADDRESSES:
        raise ConfigError(f"{address}: pages are for this machine alone; give 127.0.0.1:PORT")
    if not (port.isascii() and port.isdecimal() and int(port) <= 65535):
        raise ConfigError(f"{address}: a port is a whole number up to 65535; give 127.0.0.1:PORT")
    return host, int(port)


class _Server(ThreadingHTTPServer):
    """A thread for each request, but no more than a few at once."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64  # those beyond it would try again only after a second

    def __init__(self, host: str, port: int, pages: Pages) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.pages = pages
        self._free = threading.Semaphore(AT_ONCE)
        super().__init__((host, port), _Request)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Somebody hung up."""


class _Request(BaseHTTPRequestHandler):
    """One page for one GET."""

    server: _Server
    server_version, sys_version = "fedfuse", ""
    timeout = PATIENCE

    def do_GET(self) -> None:
        self._send(self._page())

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Whatever is no GET that can be understood, without an echo of it."""
        self._send(Page(f"{HTTPStatus(code).phrase}\n", "text/plain", code))

    def log_message(self, *_: Any) -> None:
        """Who looks at the pages is nobody's business."""

    def _page(self) -> Page:
        if not are_of_this_machine(self.headers.get_all("Host") or []):
            return Page("these pages are at 127.0.0.1 only\n", "text/plain", HTTPStatus.FORBIDDEN)
        make = self.server.pages.get(self.path.partition("?")[0])
        if make is None:
            return Page("there is no such page\n", "text/plain", HTTPStatus.NOT_FOUND)
        try:
            return self._if_new(make())
        except Exception:  # a page that fails must not say why to whoever asks
            return Page("this page cannot be shown now\n", "text/plain", HTTPStatus.INTERNAL_SERVER_ERROR)

    def _if_new(self, page: Page) -> Page:
        """Nothing for whoever says that they have it."""
        is_known = page.tag is not None and self.headers.get("If-None-Match") == f'"{page.tag}"'
        return replace(page, text="", status=HTTPStatus.NOT_MODIFIED) if is_known else page

    def _send(self, page: Page) -> None:
        content = page.text.encode()
        self.send_response(page.status)
        for name, value in {**HEADERS, **_own_headers(page)}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{page.kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _own_headers(page: Page) -> dict[str, str]:
    policy = {"Content-Security-Policy": f"{page.policy}; frame-ancestors 'none'"} if page.policy else {}
    return policy | ({"ETag": f'"{page.tag}"'} if page.tag else {})


def are_of_this_machine(hosts: Sequence[str]) -> bool:
    """Whether a request says once whom it is for, and by a loopback name: a page from elsewhere says its own."""
    return len(hosts) == 1 and _name_of(hosts[0]) in ADDRESSES


def _name_of(host: str) -> str | None:
    """Without the port, as far as it is a name at all."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
