"""One Chromium for all tests, and a folder for what it saw: ``build/screenshots``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browser.chromium import Chromium, chromium

SCREENSHOTS = Path("build") / "screenshots"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in item.path.parts:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def window() -> Iterator[Chromium]:
    with chromium() as windows:
        yield windows()


@pytest.fixture
def browser(window: Chromium) -> Iterator[Chromium]:
    """Nothing that a page did may have been complained of."""
    window.open("about:blank")
    yield window
    assert window.complaints() == []


@pytest.fixture
def photograph(browser: Chromium) -> Callable[[str], None]:
    return lambda name: browser.screenshot(SCREENSHOTS / f"{name}.png")
