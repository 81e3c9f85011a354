"""A run that lies in a folder, read without its data and without running anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fedfuse.core.errors import RunFolderError
from fedfuse.core.files import is_there
from fedfuse.core.tensor_files import DamagedError, check_safetensors
from fedfuse.experiment.config import read_yaml, validate
from fedfuse.experiment.model_files import best_models
from fedfuse.experiment.named_code import named_code
from fedfuse.experiment.result import RunResult
from fedfuse.federation.checkpoint import load_checkpoint
from fedfuse.federation.events import last_event
from fedfuse.federation.folder import RunFolder
from fedfuse.federation.logged_rounds import rounds_of_finished
from fedfuse.federation.summary import summarise


def load_run(folder: str | Path, trust_own_code: bool = False) -> RunResult:
    """The result of the run in a folder.

    Of a run that is not finished it is what was reached at the last checkpoint, and ``is_finished`` is false. Its
    ``config.yaml`` is read for that, which imports whatever of one's own it names: only if ``trust_own_code`` says so.

    >>> result = fedfuse.run("digits", out="runs/mine", method="fedavg", federation={"rounds": 1})
    >>> fedfuse.load_run("runs/mine").accuracy == result.accuracy
    True
    """
    run = RunFolder(Path(folder))
    if not run.is_complete():
        return _unfinished(run, trust_own_code)
    return RunResult(run, run.read_summary(), rounds_of_finished(run.events))


def check_models(run: RunFolder, summary: Mapping[str, Any]) -> None:
    """Refuse a finished run whose final models are not all there as they were written."""
    for fault in _faults(run, summary):
        raise RunFolderError(
            f"{run.path} holds a finished run, but {fault}; bring it back, or run it anew with --overwrite"
        )


def _faults(run: RunFolder, summary: Mapping[str, Any]) -> Iterator[str]:
    if summary.get("server_models", True):
        wanted = (run.final_weights(name) for name in summary["prototypes"])
        yield from (f"{path} is gone" for path in wanted if not is_there(path))
    if best := summary.get("best"):
        yield from _faults_of_best(run, best)
    there = list(run.models())
    written = (last_event(run.events) or {}).get("models")
    if type(written) is int and len(there) < written:
        yield f"{written - len(there)} of its {written} models are gone from {run.final}"
    for path in there:
        try:
            check_safetensors(path)
        except DamagedError as error:
            yield f"{path} is damaged: {error}"


def _faults_of_best(run: RunFolder, best: Mapping[str, Any]) -> Iterator[str]:
    """Of the best round's models, where some were kept."""
    if "round" not in best or not best.get("kept"):
        return
    there = best_models(run, best["round"])
    if len(there) < best["kept"]:
        yield f"{best['kept'] - len(there)} of the best round's models are gone from {run.best_of(best['round'])}"
    for path in there:
        try:
            check_safetensors(path)
        except DamagedError as error:
            yield f"{path} is damaged: {error}"


def _unfinished(run: RunFolder, trust_own_code: bool) -> RunResult:
    if not run.holds_a_run():
        raise RunFolderError(f"{run.path} holds no run; give the folder that a run has written, with its config.yaml")
    raw = read_yaml(run.config)
    if not trust_own_code and (code := named_code(raw)):
        raise RunFolderError(
            f"{run.config} names '{code}', which would be imported; if you trust the folder, load it with "
            "trust_own_code=True"
        )
    config = validate(raw, str(run.config))
    saved = load_checkpoint(run.checkpoints, config.of_checkpoints, run.events)
    if saved is None:
        raise RunFolderError(f"{run.path} holds no checkpoint; run it again with overwrite")
    target, server_models = config.evaluation.target_accuracy, config.recipe.has_server_model
    summary = summarise(saved.snapshot.server, config.names(), target, server_models)
    return RunResult(run, summary, tuple(saved.snapshot.server.history), is_finished=False)
