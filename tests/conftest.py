"""What all tests share: no cache of the user is touched, and a tiny experiment that can be changed at will."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from fedfuse.experiment.config import ExperimentConfig
from tests.helpers import tiny_config

settings.register_profile("whatever else this machine does", deadline=None)
settings.load_profile("whatever else this machine does")


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDFUSE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Tiny networks gain nothing from threads, and lose much when tests run side by side."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _ctrl_c_works() -> None:
    """A shell starts background jobs with Ctrl-C ignored, and every process below them inherits it."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def config() -> Callable[..., ExperimentConfig]:
    """Builds the tiny experiment with some of its sections replaced."""
    return tiny_config


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A run folder that does not exist yet."""
    return tmp_path / "run"


@pytest.fixture
def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and comparisons without drawing: pictures take longer than the tiny runs they show."""
    for drawn in ("fedfuse.experiment.run.draw_run", "fedfuse.experiment.comparison.outcome.draw_comparison"):
        monkeypatch.setattr(drawn, lambda *_args, **_options: None)
