"""What all tests share: no cache of the user is touched, and a tiny experiment that can be changed at will."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fedfuse.config import ExperimentConfig
from tests.helpers import tiny_config


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDFUSE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def config() -> Callable[..., ExperimentConfig]:
    """Builds the tiny experiment with some of its sections replaced."""
    return tiny_config


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A run folder that does not exist yet."""
    return tmp_path / "run"

