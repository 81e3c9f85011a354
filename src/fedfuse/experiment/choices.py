"""What an experiment leaves to fedfuse (``auto``), decided once and written into the run's own config.

A run's folder never says ``auto`` about anything that could change a bit: whoever resumes it, on whatever machine and
with whatever version, goes on with what was chosen at its beginning.
"""

from __future__ import annotations

from typing import Any

from fedfuse.core.randomness import Key
from fedfuse.data import Dataset
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.models import create
from fedfuse.runtime import layout
from fedfuse.runtime.compute import AUTO, device_of

TRIAL = Key(0, ("trial",))


def settled(config: ExperimentConfig, dataset: Dataset) -> ExperimentConfig:
    """The experiment with everything decided that depends on its networks and inputs."""
    if config.compute.channels_last != AUTO:
        return config
    shape, classes = dataset.model_shape, dataset.classes
    networks = (create(architecture, shape, classes, TRIAL) for architecture in config.models.values())
    return _with(config, channels_last=layout.pays(networks, shape, device_of(config.compute.device)))


def as_begun(config: ExperimentConfig, earlier: ExperimentConfig) -> ExperimentConfig:
    """The experiment with what an earlier run of it chose."""
    return _with(config, channels_last=earlier.compute.channels_last)


def _with(config: ExperimentConfig, **chosen: Any) -> ExperimentConfig:
    return config.model_copy(update={"compute": config.compute.decided(**chosen)})
