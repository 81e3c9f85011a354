"""Federated learning by distillation: fuse what many parties learnt into one model per architecture."""

from typing import TYPE_CHECKING, Any

from fedfuse.core.version import __version__

__all__ = ["Experiment", "__version__", "load_model"]

if TYPE_CHECKING:
    from fedfuse.experiment.run import Experiment
    from fedfuse.models.saved import load_model


def __getattr__(name: str) -> Any:
    """Import torch and the rest only when they are used, so that ``fedfuse --help`` is quick."""
    if name == "Experiment":
        from fedfuse.experiment.run import Experiment

        return Experiment
    if name == "load_model":
        from fedfuse.models.saved import load_model

        return load_model
    raise AttributeError(f"module 'fedfuse' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
