"""What a node works with: the experiment as its file says, and the party's own examples in their place."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from fedfuse.core.errors import ConfigError, DataError, FedfuseError, unknown
from fedfuse.core.imports import first_line
from fedfuse.data import Examples
from fedfuse.engines import LocalEngineSettings
from fedfuse.experiment.assembly import Built, build
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.run import Experiment
from fedfuse.federation.client import Clients
from fedfuse.federation.events import EventLog
from fedfuse.flower.own_data import OwnData

NodeConfig = Mapping[str, Any]
LoadData = Callable[[NodeConfig], tuple[Any, Any] | None]
"""A function of the app, the same for all parties: inputs and labels, or None for a share of the experiment's data."""

OWN_KEYS = ("data.path", "data.test_path", "source.path", "source.data.path", "compute.device", "compute.threads")
"""What a machine may have otherwise than the others: where the experiment's data lies, and what it computes on."""


def settings_of(
    experiment: str | Path, run_config: Mapping[str, Any], node_config: NodeConfig | None = None
) -> ExperimentConfig:
    """The experiment with the changes of the run's ``set``, for server and nodes alike, and then of the node's own."""
    own = shlex.split(str((node_config or {}).get("set", "")))
    for assignment in own:
        if (key := assignment.partition("=")[0]) not in OWN_KEYS:
            raise ConfigError(f"set {assignment}: a node cannot change that alone; {unknown('key', key, OWN_KEYS)}")
    return Experiment.load(experiment, [*str(run_config.get("set", "")).split(), *own]).config


def clients_of(
    config: ExperimentConfig, client: int, node_config: NodeConfig, load_data: LoadData | None = None
) -> Clients:
    """Clients of whom this one can be played, with the party's own examples if it has some."""
    built = everything(config)
    own = own_examples(built, node_config, load_data)
    if own is not None:
        return replace(built.clients, datasets={client: own})
    if client not in built.clients.datasets:
        shares = len(built.clients.datasets)
        raise ConfigError(f"this node is client {client}, but the experiment's data has {shares} shares")
    return built.clients


def own_examples(built: Built, node_config: NodeConfig, load_data: LoadData | None) -> Examples | None:
    """From the node's loader, from the app's function if it has one, or from the file that the node names."""
    own = OwnData(built.dataset, built.config.data)
    if load_data is None or "loader" in node_config:
        return own.of_node(node_config)
    try:
        loaded = load_data(node_config)
    except FedfuseError:
        raise
    except Exception as error:  # the app's own code may raise anything
        raise DataError(f"load_data raised {first_line(error)}") from error
    if loaded is None:
        return None
    if not isinstance(loaded, tuple | list) or len(loaded) != 2:
        raise DataError(f"load_data gives {type(loaded).__name__}; it must give (inputs, labels) or None")
    return own.of_arrays(*loaded, "load_data")


def everything(config: ExperimentConfig) -> Built:
    """All that the experiment says, in memory; a process that plays several clients or rounds reads the data once."""
    return _everything(config.to_yaml())


@lru_cache(maxsize=1)
def _everything(config_yaml: str) -> Built:
    config = Experiment(yaml.safe_load(config_yaml)).config
    return build(config.model_copy(update={"engine": LocalEngineSettings()}), EventLog())
