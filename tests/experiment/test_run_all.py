"""Many experiments, each into its folder."""

from __future__ import annotations

import pytest

from fedfuse import Experiment, load_run, run_all
from tests.helpers import Recorder, events_of, files_of

pytestmark = pytest.mark.usefixtures("without_pictures")


def test_what_is_finished_is_kept_and_what_was_interrupted_goes_on(config, tmp_path) -> None:
    runs = {tmp_path / str(seed): Experiment(config(seed=seed)) for seed in (0, 1, 2)}

    def stop(event) -> None:
        if event["event"] == "round_started" and event["round"] == 2:
            raise KeyboardInterrupt

    runs[tmp_path / "0"].run(tmp_path / "0")
    with pytest.raises(KeyboardInterrupt):
        runs[tmp_path / "1"].run(tmp_path / "1", listeners=(stop,))
    before, heard = files_of(tmp_path / "0"), Recorder()
    results = run_all(runs, progress=heard)
    assert list(results) == list(runs)
    assert all(result.is_finished for result in results.values())
    assert files_of(tmp_path / "0") == before
    assert [event["run"] for event in heard.of("study_run_found")] == [runs[tmp_path / "0"].config.label]
    assert len(events_of(tmp_path / "1", "run_resumed")) == 1
    assert len(results[tmp_path / "1"].provenance) == 2


def test_a_finished_run_is_read_without_its_checkpoints(config, out) -> None:
    result = Experiment(config()).run(out)
    for checkpoint in (out / "checkpoints").iterdir():
        checkpoint.unlink()
    read = load_run(out)
    assert read.summary == result.summary
    assert read.cautions == []
    assert [client.size for client in read.partition.clients]
