"""The documentation's site as people meet it: it fits the screen, finds words, and asks nobody for anything."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest

from tests.browser.chromium import Chromium

ROOT = Path(__file__).parents[2]
TYPED = """
const box = document.querySelector(".md-search__input");
box.focus();
box.value = arguments[0];
box.dispatchEvent(new Event("keyup"));
"""
PAGES = ("index", "fuse", "which-method", "tutorials/first-run", "robustness", "methods/feddf", "commands")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address on this machine: search needs a server, which the pages do not."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Silent(SimpleHTTPRequestHandler):
    """A server of files that prints nothing."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_and_loads_nothing_from_elsewhere(
    browser: Chromium, site: str, photograph: Callable[[str], None], name: str, width: int
) -> None:
    browser.look(width)
    browser.open(f"{site}/{name}.html")
    assert browser.run("return document.querySelector('h1').textContent.trim()")
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert {urlsplit(address).netloc for address in browser.requests()} <= {urlsplit(site).netloc, ""}
    photograph(f"site-{name.replace('/', '-')}-{width}")


def test_the_first_tutorial_is_fusing_checkpoints(browser: Chromium, site: str) -> None:
    browser.look(1280)
    browser.open(f"{site}/tutorials/index.html")
    first = browser.run("return document.querySelector('article li a, article td a').getAttribute('href')")
    assert first.endswith("fuse.html")


def test_a_word_is_found(browser: Chromium, site: str) -> None:
    browser.look(1280)
    browser.open(f"{site}/index.html")
    browser.wait("return document.querySelector('.md-search__input')")
    browser.run(TYPED, "SCAFFOLD")
    assert browser.wait("return document.querySelector('.md-search-result__item a')?.getAttribute('href') ?? null")
