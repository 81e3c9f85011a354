"""What an experiment leaves to fedfuse (``auto``), decided once and written into the run's own config.

A run's folder never says ``auto`` about anything that could change a bit: whoever resumes it, on whatever machine and
with whatever version, goes on with what was chosen at its beginning.
"""

from __future__ import annotations

from typing import Any

from fedfuse.core.randomness import Key
from fedfuse.data import Dataset
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.config.noise import left_to_us, noise_keys, with_noise
from fedfuse.models import create
from fedfuse.runtime import layout
from fedfuse.runtime.compute import AUTO, device_of

TRIAL = Key(0, ("trial",))


def settled(config: ExperimentConfig, dataset: Dataset) -> ExperimentConfig:
    """The experiment with everything decided that depends on its networks and inputs."""
    device, shape, classes = device_of(config.compute.device), dataset.model_shape, dataset.classes
    networks = (create(architecture, shape, classes, TRIAL) for architecture in config.models.values())
    last = config.compute.channels_last == AUTO and layout.pays(networks, shape, device)
    return _with(config, channels_last=last, stack=device.type == "cpu")


def as_begun(config: ExperimentConfig, earlier: ExperimentConfig) -> ExperimentConfig:
    """The experiment with what an earlier run of it chose."""
    begun = _with(config, channels_last=earlier.compute.channels_last, stack=earlier.compute.stack)
    chosen = dict(noise_keys(earlier))
    return with_noise(begun, {key: chosen[key] for key in left_to_us(config) if chosen.get(key, AUTO) != AUTO})


def chosen(config: ExperimentConfig, settled: ExperimentConfig) -> dict[str, Any]:
    """What was left to fedfuse, by its key, and what it chose."""
    before, after = config.compute.model_dump(), settled.compute.model_dump()
    noise = dict(noise_keys(settled))
    return {
        **{f"compute.{name}": after[name] for name, value in before.items() if value == AUTO != after[name]},
        **{key: noise[key] for key in left_to_us(config) if noise[key] != AUTO},
    }


def _with(config: ExperimentConfig, **chosen: Any) -> ExperimentConfig:
    return config.model_copy(update={"compute": config.compute.decided(**chosen)})
