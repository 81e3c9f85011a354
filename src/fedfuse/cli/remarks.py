"""What a command says beside its results: how to go on."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.earlier import is_this_very
from fedfuse.federation.folder import RunFolder


def how_to_go_on(config: ExperimentConfig, folder: Path) -> str:
    """Until a run has made the folder its own, there is nothing there to resume, or something else."""
    run = RunFolder(folder)
    is_ours = run.config.exists() and is_this_very(config, run)
    return f"fedfuse run {shlex.quote(str(folder))} --resume" if is_ours else "the same command"


def nothing_to_resume(config: ExperimentConfig, folder: Path) -> Iterator[str]:
    """For whoever wants to go on with a run that is not there, and perhaps means one beside it."""
    if RunFolder(folder).holds_a_run():
        return
    end = f"-{config.method.called}-seed{config.seed}"
    beside = (one.name for one in folder.parent.glob(f"{config.name}*") if one.name.endswith(end))
    others = f"; beside it: {', '.join(sorted(beside))}" if folder.parent.is_dir() else ""
    yield f"nothing to go on with in {folder}, so the run begins{others.removesuffix('; beside it: ')}"
