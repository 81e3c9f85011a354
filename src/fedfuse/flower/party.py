"""What a node works with: the experiment as its file says, and the party's own examples in their place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.data import Examples
from fedfuse.engines import LocalEngineSettings
from fedfuse.experiment.assembly import build
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.run import Experiment
from fedfuse.federation.events import EventLog
from fedfuse.parts.local import Clients

NodeConfig = Mapping[str, Any]
LoadData = Callable[[NodeConfig], tuple[Any, Any] | None]
"""A party's own function: its inputs and labels, or None for its share of the experiment's data."""


def settings_of(experiment: str | Path, run_config: Mapping[str, Any]) -> ExperimentConfig:
    """The experiment with the changes that the run's ``set`` makes, which server and nodes read alike."""
    return Experiment.load(experiment, str(run_config.get("set", "")).split()).config


def clients_of(config: ExperimentConfig, client: int, own: tuple[Any, Any] | None) -> Clients:
    """Clients of whom this one can be played, with the party's own examples if it has some."""
    clients = _everybody(config.to_yaml())
    if own is not None:
        return replace(clients, datasets={client: own_examples(*own, clients.datasets[0], clients.bank.classes)})
    if client not in clients.datasets:
        raise ConfigError(f"this node is client {client}, but the experiment's data has {len(clients.datasets)} shares")
    return clients


def own_examples(inputs: Any, labels: Any, like: Examples, classes: int) -> Examples:
    """A party's arrays as examples of the experiment's kind."""
    x, y = torch.as_tensor(np.asarray(inputs)), torch.as_tensor(np.asarray(labels))
    kind, expected = (x.dtype, tuple(x.shape[1:])), (like.inputs.dtype, like.shape)
    if kind != expected:
        raise DataError("load_data gives {} inputs of shape {}; the experiment has {} of {}".format(*kind, *expected))
    if y.ndim != 1 or len(y) != len(x) or not len(y) or y.is_floating_point():
        raise DataError(f"load_data gives {tuple(y.shape)} {y.dtype} labels for {len(x)} inputs; give one integer each")
    if int(y.min()) < 0 or int(y.max()) >= classes:
        raise DataError(f"load_data gives labels {int(y.min())}..{int(y.max())}; the experiment has 0..{classes - 1}")
    return Examples(x, y.long())


@lru_cache(maxsize=1)
def _everybody(config_yaml: str) -> Clients:
    """Everything in memory; a process that plays several clients or rounds reads the data once."""
    config = Experiment(yaml.safe_load(config_yaml)).config
    return build(config.model_copy(update={"engine": LocalEngineSettings()}), EventLog()).clients
