"""Where an experiment file says how much noise protects somebody: all such keys, whether they are left to fedfuse, and
the file with what was chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fedfuse.core.part import Part
from fedfuse.core.releases import AUTO
from fedfuse.parts.protocol import Votes
from fedfuse.parts.scores import ByCertainty
from fedfuse.parts.upload import Clip, Noise, Statistics

if TYPE_CHECKING:
    from fedfuse.experiment.config.schema import ExperimentConfig

LATER_KEYS = {
    "clip": ("quantile", "rate", "bit_deviation"),
    "noise": ("multiplier", "shared"),
    "certainty": ("scaled_by",),
}
"""Keys that these parts did not have at first; with their defaults, a run is the one that it was."""
PARTS: dict[str, type[Part]] = {"clip": Clip, "noise": Noise, "certainty": ByCertainty}


def noise_keys(config: ExperimentConfig) -> Iterator[tuple[str, Any]]:
    """Each key that says how much noise there is, and its value."""
    if config.training.privacy is not None:
        yield "training.privacy.multiplier", config.training.privacy.multiplier
    for place, link in enumerate(config.recipe.upload):
        if isinstance(link, Noise | Statistics) and link.multiplier is not None:
            yield f"method.upload[{place}].multiplier", link.multiplier
    if isinstance(config.recipe.protocol, Votes) and config.recipe.protocol.deviation is not None:
        yield "method.protocol.deviation", config.recipe.protocol.deviation


def promising(config: ExperimentConfig) -> Iterator[str]:
    """Keys that have no meaning but in a promise."""
    return (key for key, _ in noise_keys(config) if key != "method.protocol.deviation")


def left_to_us(config: ExperimentConfig) -> Iterator[str]:
    """Keys that are auto."""
    return (key for key, value in noise_keys(config) if value == AUTO)


def with_noise(config: ExperimentConfig, chosen: Mapping[str, Any]) -> ExperimentConfig:
    """The experiment with these values in the place of auto, by key."""
    training, method = config.training, config.method
    if training.privacy is not None:
        privacy = training.privacy.model_copy(update=_of("training.privacy", chosen))
        training = training.model_copy(update={"privacy": privacy})
    upload = tuple(
        link.model_copy(update=_of(f"method.upload[{place}]", chosen)) for place, link in enumerate(method.upload)
    )
    protocol = method.protocol.model_copy(update=_of("method.protocol", chosen))
    method = method.model_copy(update={"upload": upload, "protocol": protocol})
    return config.model_copy(update={"training": training, "method": method})


def without_later_defaults(dump: dict[str, Any]) -> dict[str, Any]:
    """A dumped experiment whose identity is that of the same experiment before these keys were."""
    method = dump["method"]
    links = [_without(link) for link in method["upload"]]
    return {**dump, "method": {**method, "upload": links, "scores": _without(method["scores"])}}


def _without(part: dict[str, Any]) -> dict[str, Any]:
    kind = part["kind"]
    defaults = {key: PARTS[kind].model_fields[key].default for key in LATER_KEYS.get(kind, ())}
    return {key: value for key, value in part.items() if key not in defaults or value != defaults[key]}


def _of(section: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    return {key.rpartition(".")[2]: value for key, value in chosen.items() if key.rpartition(".")[0] == section}
