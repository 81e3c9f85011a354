"""A federation of very many clients: rounds, checkpoints and objects do not grow with them. Counted, not timed."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import yaml

from fedfuse.experiment.assembly import build
from fedfuse.experiment.run import Experiment
from fedfuse.federation.events import EventLog
from tests.helpers import files_of, without_seconds

pytestmark = pytest.mark.usefixtures("without_pictures")

FEW, MANY, VERY_MANY = 100, 20_000, 100_000
DISTILLED = {"name": "feddf", "fuse": {"distiller": {"steps": 3}}}
METHODS = {"fedavg": "fedavg", "scaffold": "scaffold", "feddf": DISTILLED, "local-only": "local-only", "fd": "fd"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Files with three examples for each client, and the same public and test examples for any number of them."""
    folder = tmp_path_factory.mktemp("data")

    def file(clients: int) -> Path:
        path = folder / f"{clients}.npz"
        if not path.exists():
            random = np.random.default_rng(0)
            inputs = random.standard_normal((3 * clients + 80, 4), dtype=np.float32)
            labels = (inputs.sum(axis=1) > 0).astype(np.int64)
            np.savez(path, x_train=inputs[:-50], y_train=labels[:-50], x_test=inputs[-50:], y_test=labels[-50:])
        return path

    return file


def raw(file: Path, clients: int, method: str, rounds: int = 4) -> dict[str, object]:
    return {
        "data": {"name": "npz", "path": str(file), "public": 20, "validation": 10},
        "partition": {"kind": "iid", "clients": clients},
        "models": {"small": {"arch": "mlp", "hidden": [4]}, "wide": {"arch": "mlp", "hidden": [6]}},
        "method": METHODS[method],
        # Three examples say little: who stands out with them would be asked twice, and differs with who is drawn.
        "federation": {"rounds": rounds, "clients_per_round": 6, "moves": "taken"},
    }


def count(work) -> tuple[int, int]:
    """Python's and C's functions that were called, and the most bytes that Python and NumPy had at a time."""
    calls = 0

    def note(_frame, event, _function):
        nonlocal calls
        calls += event in ("call", "c_call")

    gc.collect()
    gc.disable()  # finalisers of other tests' objects are nobody's calls
    tracemalloc.start()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        gc.enable()
    return calls, peak


@pytest.mark.parametrize("method", ["fedavg", "scaffold", "feddf", "fd"])
def test_a_round_costs_the_same(data, method):
    counts = {}
    for clients in (FEW, MANY):
        built = build(Experiment(raw(data(clients), clients, method)).config, EventLog())
        with closing(built.federation.engine):
            snapshot = built.federation.advance(built.federation.advance(built.federation.start()))
            counts[clients] = count(lambda: built.federation.advance(snapshot))  # noqa: B023 - called at once
    (calls, peak), (calls_of_many, peak_of_many) = counts[FEW], counts[MANY]
    assert calls_of_many <= 1.1 * calls  # who is drawn decides how many of them are trained together
    assert peak_of_many <= peak + 20_000


@pytest.mark.parametrize("method", ["scaffold", "local-only"])
def test_checkpoints_are_as_small(data, tmp_path, method):
    written = []
    for clients in (FEW, MANY):
        folder = Experiment(raw(data(clients), clients, method, rounds=2)).run(tmp_path / str(clients)).folder
        written.append(sum(file.stat().st_size for file in folder.checkpoints.rglob("*") if file.is_file()))
    assert written[1] <= 1.1 * written[0] + 500


def test_a_client_is_no_object(data):
    objects = []
    for clients in (FEW, MANY):
        gc.collect()
        before = len(gc.get_objects())
        built = build(Experiment(raw(data(clients), clients, "fedavg")).config, EventLog())
        gc.collect()
        objects.append(len(gc.get_objects()) - before)
        built.federation.engine.close()
    assert objects[1] <= objects[0] + 300


def test_a_start_makes_no_call_for_a_client(data):
    calls = {}
    for clients in (FEW, MANY):
        config = Experiment(raw(data(clients), clients, "fedavg")).config
        build(config, EventLog())  # what is imported and remembered once
        calls[clients] = count(lambda: build(config, EventLog()))[0]  # noqa: B023 - called at once
    assert calls[MANY] - calls[FEW] <= MANY / 10


@pytest.mark.parametrize("method", ["scaffold", "local-only"])
def test_a_run_that_was_stopped_goes_on_to_the_same_bytes(data, tmp_path, method):
    def stop(event):
        if event["event"] == "client_finished" and event["round"] == 3:
            raise KeyboardInterrupt

    experiment = Experiment(raw(data(VERY_MANY), VERY_MANY, method))
    expected = experiment.run(tmp_path / "straight")
    with pytest.raises(KeyboardInterrupt):
        experiment.run(tmp_path / "run", listeners=(stop,))
    arrays = tmp_path / "run" / "partition.safetensors"
    before = arrays.stat().st_mtime_ns
    resumed = experiment.run(tmp_path / "run", resume=True)
    assert arrays.stat().st_mtime_ns == before
    assert files_of(resumed.folder.final) == files_of(expected.folder.final)
    assert without_seconds(resumed.summary) == without_seconds(expected.summary)
    assert resumed.partition == expected.partition


@pytest.mark.long
def test_a_run_is_killed_and_resumed_with_other_workers(data, tmp_path):
    given = raw(data(VERY_MANY), VERY_MANY, "scaffold", rounds=60)
    expected = Experiment(given).run(tmp_path / "straight")
    file, out = tmp_path / "experiment.yaml", tmp_path / "run"
    file.write_text(yaml.safe_dump(given))
    command = [sys.executable, "-m", "fedfuse", "run", str(file), "--out", str(out), "--resume"]
    for workers, reached in (("1", 5), ("2", 10)):
        process = subprocess.Popen([*command, "--workers", workers], stdout=subprocess.DEVNULL)
        wait_for_round(out / "events.jsonl", reached, process)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "it was killed before it could finish"
    done = subprocess.run([*command, "--quiet"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert files_of(out / "final") == files_of(expected.folder.final)


def wait_for_round(log: Path, number: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while not log.exists() or log.read_text().count('"round_finished"') < number:
        assert process.poll() is None, "it ended by itself"
        assert time.monotonic() < deadline, "the other process did not get there"
        time.sleep(0.01)
