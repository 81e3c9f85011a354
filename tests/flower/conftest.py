"""Without Flower these tests are skipped; with it, nothing of the user's is touched."""

from __future__ import annotations

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'fedfuse[flower]'")


@pytest.fixture(autouse=True)
def _own_flower_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FLWR_HOME", str(tmp_path / "flwr"))
    monkeypatch.setenv("FLWR_TELEMETRY_ENABLED", "0")


@pytest.fixture(autouse=True)
def _a_run_of_flower(monkeypatch):
    """Messages carry the identity of the task that makes them; outside of a run there is none."""
    from flwr.supercore.task_identity import TaskIdentity

    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
