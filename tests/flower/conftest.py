"""Without Flower these tests are skipped; with it, nothing of the user's is touched."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("flwr") is None:

    class WithoutFlower(pytest.Module):
        """A test module that is never imported."""

        def collect(self) -> Iterator[pytest.Item]:
            pytest.skip("Flower is not installed: pip install 'fedfuse[flower]'")

    def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
        return WithoutFlower.from_parent(parent, path=module_path)


LONGEST = [
    Path(__file__).with_name(f"test_{name}.py")
    for name in ("faults", "silent_nodes", "deployment", "compose", "partition")
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits for real processes begins first, so that nobody waits for it in the end."""
    items.sort(key=lambda item: LONGEST.index(item.path) if item.path in LONGEST else len(LONGEST))


@pytest.fixture(autouse=True)
def _own_flower_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLWR_HOME", str(tmp_path / "flwr"))
    monkeypatch.setenv("FLWR_TELEMETRY_ENABLED", "0")


@pytest.fixture(autouse=True)
def _a_run_of_flower(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages carry the identity of the task that makes them; outside of a run there is none."""
    from flwr.supercore.task_identity import TaskIdentity

    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
