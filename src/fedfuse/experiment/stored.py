"""A run that lies in a folder, read without its data and without running anything."""

from __future__ import annotations

from pathlib import Path

from fedfuse.core.errors import RunFolderError
from fedfuse.experiment.config import read_yaml, validate
from fedfuse.experiment.result import RunResult
from fedfuse.federation import RoundRecord
from fedfuse.federation.checkpoint import load_checkpoint
from fedfuse.federation.events import read_events
from fedfuse.federation.folder import RunFolder
from fedfuse.federation.summary import summarise


def load_run(folder: str | Path) -> RunResult:
    """The result of the run in a folder.

    Of a run that is not finished it is what was reached at the last checkpoint, and ``is_finished`` is false.

    >>> result = fedfuse.run("digits", out="runs/mine", method="fedavg", federation={"rounds": 1})
    >>> fedfuse.load_run("runs/mine").accuracy == result.accuracy
    True
    """
    run = RunFolder(Path(folder))
    if not run.is_complete():
        return _unfinished(run)
    rounds = (event for event in read_events(run.events) if event["event"] == "round_finished")
    return RunResult(run, run.read_summary(), tuple(map(RoundRecord.from_event, rounds)))


def _unfinished(run: RunFolder) -> RunResult:
    if not run.holds_a_run():
        raise RunFolderError(f"{run.path} holds no run; give the folder that a run has written, with its config.yaml")
    config = validate(read_yaml(run.config), str(run.config))
    saved = load_checkpoint(run.checkpoints, config.sha256(), run.events)
    if saved is None:
        raise RunFolderError(f"{run.path} holds no checkpoint that can be read; run it again with overwrite")
    target, server_models = config.evaluation.target_accuracy, config.recipe.has_server_model
    summary = summarise(saved.snapshot.server, config.names(), target, server_models)
    return RunResult(run, summary, tuple(saved.snapshot.server.history), is_finished=False)
