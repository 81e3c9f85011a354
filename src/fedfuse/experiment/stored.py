"""A run that lies in a folder, read without its data and without running anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fedfuse.core.errors import RunFolderError
from fedfuse.core.files import is_there
from fedfuse.core.tensor_files import DamagedError, check_safetensors
from fedfuse.experiment.model_files import best_models
from fedfuse.experiment.provenance import beginning, facts_of
from fedfuse.experiment.result import RunResult
from fedfuse.experiment.stored_config import StoredConfig
from fedfuse.federation.events import last_event
from fedfuse.federation.folder import RunFolder
from fedfuse.federation.logged_rounds import rounds_of_finished, rounds_so_far
from fedfuse.federation.summary import summarise_rounds


def load_run(folder: str | Path, trust_own_code: bool = False) -> RunResult:
    """The result of the run in a folder, which needs neither its data nor any code that it names.

    Of a run that is not finished it is what its log has so far, and ``is_finished`` is false. ``trust_own_code`` is for
    its ``model()``: a network of one's own (``arch: own``) is then built by calling what the file names.

    >>> result = fedfuse.run("digits", out="runs/mine", method="fedavg", federation={"rounds": 1})
    >>> fedfuse.load_run("runs/mine").accuracy == result.accuracy
    True
    """
    run = RunFolder(Path(folder))
    if not run.is_complete():
        return _unfinished(run, trust_own_code)
    return RunResult(run, run.read_summary(), rounds_of_finished(run.events), runs_own_code=trust_own_code)


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
    config, history = StoredConfig.read(run.config), rounds_so_far(run.events)
    names = history[0].prototypes if history else config.models
    unknown = {name: {"parameters": None, "weights_sha256": None} for name in names}
    about = {**config.names(), **facts_of(beginning(run))}
    summary = summarise_rounds(history, unknown, about, config.target, config.server_models, config.metrics)
    return RunResult(run, summary, history, is_finished=False, runs_own_code=trust_own_code)
