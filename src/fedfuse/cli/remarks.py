"""What a command says beside its results: what is allowed but hardly meant, and how to go on."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedfuse.data.row_numbers import row_numbers
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.earlier import other_experiment
from fedfuse.federation.folder import RunFolder


def hints(configs: Sequence[ExperimentConfig]) -> Iterator[str]:
    """What a person who wrote these experiments may not have had in mind."""
    for data in dict.fromkeys(config.data for config in configs):
        if columns := row_numbers(data):
            names = ", ".join(name if name.isidentifier() else f'"{name}"' for name in columns)
            yield f"read as inputs like any other: {names}; --set 'data.ignore_columns=[{names}]' leaves them out"


def how_to_go_on(config: ExperimentConfig, folder: Path) -> str:
    """Until a run has made the folder its own, there is nothing there to resume, or something else."""
    run = RunFolder(folder)
    is_ours = run.config.exists() and other_experiment(config, run) is None
    return f"fedfuse run {shlex.quote(str(folder))} --resume" if is_ours else "the same command"
