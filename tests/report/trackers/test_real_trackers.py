"""MLflow, Weights & Biases and Trackio as they are, on this machine alone; ``make test-trackers`` has them."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import fedfuse
from tests.experiment.test_tracking import THREE, TINY, crash_after


def crashed_and_finished(tmp_path: Path, track: Any) -> Any:
    options = {"federation": THREE, "track": track, "out": tmp_path / "run"}
    with pytest.raises(RuntimeError):
        fedfuse.run(TINY, **options, progress=crash_after(3))
    heard: list[Any] = []
    result = fedfuse.run(TINY, **options, progress=heard.append)
    assert not [event for event in heard if event["event"] == "tracker_failed"]
    return result


def points_of(result: Any) -> list[tuple[int, float]]:
    (name,) = result.accuracy
    return [(record.round, record.prototypes[name].accuracy) for record in result.history]


def test_mlflow_has_one_run_with_every_round_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where MLflow puts files, if nobody says
    pytest.importorskip("mlflow")
    from mlflow.tracking import MlflowClient

    uri = f"sqlite:///{tmp_path / 'store.db'}"
    result = crashed_and_finished(tmp_path, {"kind": "mlflow", "uri": uri, "experiment": "trial", "group": "mine"})
    client = MlflowClient(uri)
    (run,) = client.search_runs([client.get_experiment_by_name("trial").experiment_id])
    (name,) = result.accuracy
    history = client.get_metric_history(run.info.run_id, f"accuracy/{name}")
    assert [(point.step, point.value) for point in history] == points_of(result)
    assert run.info.status == "FINISHED"
    assert run.data.params["federation.rounds"] == "3"
    assert run.data.tags["fedfuse.group"] == "mine"
    assert run.data.metrics[f"summary/accuracy_last/{name}"] == result.accuracy[name]
    assert [file.path for file in client.list_artifacts(run.info.run_id)] == ["pictures"]


def test_wandb_writes_what_can_be_handed_over_later(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    crashed_and_finished(tmp_path, {"kind": "wandb", "mode": "offline"})
    files = sorted((tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb"))
    assert len(files) == 2
    assert len({file.name for file in files}) == 1  # one run, in two parts
    assert all(file.stat().st_size for file in files)


def test_trackio_has_every_round_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    pytest.importorskip("trackio")
    result = crashed_and_finished(tmp_path, {"kind": "trackio", "project": "trial"})
    with sqlite3.connect(tmp_path / "trackio" / "trial.db") as database:
        steps = [step for (step,) in database.execute("select step from metrics order by id")]
    assert steps == [1, 2, 3, 3]  # and the summary
    assert len(result.history) == 3
    assert "Trackio" not in capfd.readouterr().out
