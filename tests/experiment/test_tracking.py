"""Trackers hear of every round once, whatever happens to the run, and the run never minds what happens to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fedfuse
from fedfuse.core.errors import ConfigError, MissingExtraError
from fedfuse.experiment import tracking
from fedfuse.report.trackers import Mlflow, TensorBoard
from fedfuse.report.trackers.worker import Worker
from tests.experiment.own_trackers import Notebook
from tests.experiment.test_api import TINY as TINY_WITHOUT_PICTURES
from tests.experiment.test_api import finals

OWN = "tests.experiment.own_trackers"
TINY = {**TINY_WITHOUT_PICTURES, "evaluation": {"pictures": True}}
THREE = {"rounds": 3, "checkpoint_every": 2}


@pytest.fixture(autouse=True)
def kept() -> Any:
    Notebook.kept.clear()
    return Notebook.kept


def crash_after(number: int) -> Any:
    def listener(event: Any) -> None:
        if event["event"] == "round_finished" and event["round"] == number:
            raise RuntimeError("power cut")

    return listener


def test_trackers_are_no_part_of_an_experiment_and_change_no_bit(tmp_path: Path) -> None:
    plain, with_it = fedfuse.Experiment.load(TINY), fedfuse.Experiment.load(TINY, track=f"{OWN}:Recording")
    assert plain.config.sha256() == with_it.config.sha256()
    plain.run(tmp_path / "plain")
    with_it.run(tmp_path / "tracked")
    assert finals(tmp_path / "plain") == finals(tmp_path / "tracked")
    assert with_it.run(tmp_path / "plain").is_finished


def test_a_tracker_hears_parameters_rounds_and_the_end(tmp_path: Path, kept: dict[str, Notebook]) -> None:
    result = fedfuse.run(TINY, federation=THREE, track={"kind": f"{OWN}:Recording", "models": True}, out=tmp_path)
    (book,) = kept.values()
    (name,) = result.accuracy
    assert [number for number, _ in book.heard] == [1, 2, 3]
    for record, (_, values) in zip(result.history, book.heard, strict=True):
        assert values[f"accuracy/{name}"] == record.prototypes[name].accuracy
    assert book.heard[-1][1]["total/bytes_up"] == result.summary["bytes_up"]
    assert book.run.parameters["federation.rounds"] == 3
    assert book.run.parameters["training.optimizer.kind"] == "sgd"
    ending, summary, files = book.ended
    assert ending == "finished"
    assert summary[f"accuracy_last/{name}"] == result.accuracy[name]
    assert {"accuracy.png", f"{name}.safetensors"} <= set(files)


@pytest.mark.parametrize("crash", [1, 2, 3])
def test_a_run_that_goes_on_is_the_same_run_there_and_no_round_is_heard_twice(
    tmp_path: Path, kept: dict[str, Notebook], crash: int
) -> None:
    options = {"federation": THREE, "track": f"{OWN}:Recording", "out": tmp_path}
    with pytest.raises(RuntimeError, match="power cut"):
        fedfuse.run(TINY, **options, progress=crash_after(crash))
    before = [(identity, book.heard, book.ended[0]) for identity, book in kept.items()]
    fedfuse.run(TINY, **options)
    heard = [number for _, book, _ in before for number, _ in book]
    assert heard == list(range(1, crash))  # the listener that fails in a round comes before the tracker
    assert before[0][2] == "failed"
    (again,) = [book for book in kept.values() if book.ended[0] == "finished"]
    if crash > 2:  # there is a checkpoint; without one the run begins anew
        assert again.run.id == before[0][0]
        assert heard + [number for number, _ in again.heard] == [1, 2, 3]


def test_rounds_that_nobody_heard_are_told_from_the_log(tmp_path: Path, kept: dict[str, Notebook]) -> None:
    with pytest.raises(RuntimeError):
        fedfuse.run(TINY, federation=THREE, out=tmp_path, progress=crash_after(3))
    fedfuse.run(TINY, federation=THREE, out=tmp_path, track=f"{OWN}:Recording")
    (book,) = kept.values()
    assert [number for number, _ in book.heard] == [1, 2, 3]
    assert book.run.resumed_at == 2


def test_a_run_that_is_made_anew_is_another_one(tmp_path: Path, kept: dict[str, Notebook]) -> None:
    for _ in range(2):
        fedfuse.run(TINY, track=f"{OWN}:Recording", out=tmp_path, overwrite=True)
    assert len(kept) == 2
    fedfuse.run(TINY, track=f"{OWN}:Recording", out=tmp_path)
    assert len(kept) == 2


@pytest.mark.parametrize(
    ("tracker", "reason"),
    [
        ({"kind": f"{OWN}:Broken"}, "ConnectionError: no route to host"),
        ({"kind": f"{OWN}:Broken", "at": "numbers"}, "SystemExit: login failed"),
        ({"kind": f"{OWN}:Hanging"}, "it did not end within 0.1 s"),
    ],
)
def test_a_tracker_that_fails_is_said_once_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tracker: dict[str, str], reason: str
) -> None:
    monkeypatch.setattr(tracking, "PATIENCE", 0.1 if "Hanging" in tracker["kind"] else 5.0)
    heard: list[Any] = []
    result = fedfuse.run(TINY, track=tracker, out=tmp_path, progress=heard.append)
    assert result.is_finished
    assert [event["reason"] for event in heard if event["event"] == "tracker_failed"] == [reason]
    assert "tracker_failed" not in (tmp_path / "events.jsonl").read_text()


def test_a_tracker_that_cannot_keep_up_is_given_up() -> None:
    worker = Worker(lambda: __import__("threading").Event().wait(), most_waiting=3)  # type: ignore[arg-type]
    for _ in range(4):
        worker.do(lambda _session: None)
    assert worker.failure == "it is 3 calls behind"
    worker.close(60.0)


def test_what_is_not_installed_is_said_before_anything_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mlflow, "package", "no_such_package")
    with pytest.raises(MissingExtraError, match=r"track mlflow needs an optional package"):
        fedfuse.run(TINY, track="mlflow", out=tmp_path / "run")
    with pytest.raises(MissingExtraError):
        fedfuse.compare(TINY, "fedavg", [0, 1], track="mlflow", out=tmp_path / "several")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ConfigError, match="tensorbord"):
        fedfuse.run(TINY, track="tensorbord")


def test_comparisons_group_their_runs(tmp_path: Path, kept: dict[str, Notebook]) -> None:
    track = [{"kind": f"{OWN}:Recording"}, {"kind": f"{OWN}:Recording", "group": "mine"}]
    fedfuse.compare(TINY, "fedavg", [0], track=track[0], out=tmp_path / "study")
    fedfuse.compare(TINY, "fedavg", [1], track=track[1], out=tmp_path / "study")
    assert [book.run.group for book in kept.values()] == ["study", "mine"]
    assert [book.run.name for book in kept.values()] == ["experiment fedavg seed 0", "experiment fedavg seed 1"]


def test_tensorboard_shows_every_round_once_after_a_crash(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    options = {"federation": THREE, "track": "tensorboard", "out": tmp_path / "run"}
    with pytest.raises(RuntimeError):
        fedfuse.run(TINY, **options, progress=crash_after(3))
    result = fedfuse.run(TINY, **options)
    found = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    found.Reload()
    (name,) = result.accuracy
    points = [(point.step, point.value) for point in found.Scalars(f"accuracy/{name}")]
    assert points == [
        (record.round, pytest.approx(record.prototypes[name].accuracy, abs=1e-6)) for record in result.history
    ]
    assert "pictures/accuracy" in found.Tags()["images"]
    assert found.Scalars(f"summary/accuracy_last/{name}")[-1].value == pytest.approx(result.accuracy[name], abs=1e-6)
    fedfuse.run(TINY, **options, overwrite=True)
    assert len(list((tmp_path / "run" / "tensorboard").iterdir())) == 1


def test_tensorboard_folders_of_several_runs_lie_side_by_side(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    track = TensorBoard(folder=str(tmp_path / "board"))
    fedfuse.compare(TINY, "fedavg", [0, 1], track=[track], out=tmp_path / "study")
    assert sorted(path.name for path in (tmp_path / "board").iterdir()) == [
        "experiment-fedavg-seed0",
        "experiment-fedavg-seed1",
    ]
