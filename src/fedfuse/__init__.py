"""Federated learning by distillation: fuse what many parties learnt into one model per architecture."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fedfuse.core.version import __version__

__all__ = [
    "Architecture",
    "Batch",
    "Comparison",
    "Engine",
    "EngineSettings",
    "Experiment",
    "FedfuseError",
    "Fuse",
    "Fused",
    "Hooks",
    "Key",
    "Merge",
    "Merged",
    "Method",
    "Objective",
    "Optimizer",
    "Partition",
    "Recipe",
    "RunResult",
    "Screen",
    "Screened",
    "ServerView",
    "SourceSettings",
    "Start",
    "Task",
    "Teacher",
    "TeacherKind",
    "Update",
    "WeightedMerge",
    "Weights",
    "__version__",
    "compare",
    "list_datasets",
    "list_methods",
    "list_models",
    "list_presets",
    "load_model",
    "load_run",
    "run",
]

_PLACES = {
    "Architecture": "fedfuse.models",
    "Batch": "fedfuse.parts.local",
    "Comparison": "fedfuse.experiment.comparison",
    "Engine": "fedfuse.federation",
    "EngineSettings": "fedfuse.engines",
    "Experiment": "fedfuse.experiment.run",
    "FedfuseError": "fedfuse.core.errors",
    "Fuse": "fedfuse.parts.fuse",
    "Fused": "fedfuse.parts.fuse",
    "Hooks": "fedfuse.parts.local",
    "Key": "fedfuse.core.randomness",
    "Merge": "fedfuse.parts.merge",
    "Merged": "fedfuse.parts.merge",
    "Method": "fedfuse.methods",
    "Objective": "fedfuse.parts.local",
    "Optimizer": "fedfuse.runtime.optimizers",
    "Partition": "fedfuse.data",
    "Recipe": "fedfuse.federation",
    "RunResult": "fedfuse.experiment.result",
    "Screen": "fedfuse.parts.screen",
    "Screened": "fedfuse.parts.screen",
    "ServerView": "fedfuse.parts.context",
    "SourceSettings": "fedfuse.parts.sources",
    "Start": "fedfuse.parts.start",
    "Task": "fedfuse.core.messages",
    "Teacher": "fedfuse.parts.fuse",
    "TeacherKind": "fedfuse.parts.fuse.members",
    "Update": "fedfuse.core.messages",
    "WeightedMerge": "fedfuse.parts.merge.base",
    "Weights": "fedfuse.core.weights",
    "compare": "fedfuse.experiment.api",
    "list_datasets": "fedfuse.experiment.listing",
    "list_methods": "fedfuse.experiment.listing",
    "list_models": "fedfuse.experiment.listing",
    "list_presets": "fedfuse.experiment.listing",
    "load_model": "fedfuse.models.saved",
    "load_run": "fedfuse.experiment.stored",
    "run": "fedfuse.experiment.api",
}
"""Where a name is imported from when it is first used: torch takes seconds, which ``fedfuse --help`` need not pay."""

if TYPE_CHECKING:
    from fedfuse.core.errors import FedfuseError
    from fedfuse.core.messages import Task, Update
    from fedfuse.core.randomness import Key
    from fedfuse.core.weights import Weights
    from fedfuse.data import Partition
    from fedfuse.engines import EngineSettings
    from fedfuse.experiment.api import compare, run
    from fedfuse.experiment.comparison import Comparison
    from fedfuse.experiment.listing import list_datasets, list_methods, list_models, list_presets
    from fedfuse.experiment.result import RunResult
    from fedfuse.experiment.run import Experiment
    from fedfuse.experiment.stored import load_run
    from fedfuse.federation import Engine, Recipe
    from fedfuse.methods import Method
    from fedfuse.models import Architecture
    from fedfuse.models.saved import load_model
    from fedfuse.parts.context import ServerView
    from fedfuse.parts.fuse import Fuse, Fused, Teacher
    from fedfuse.parts.fuse.members import TeacherKind
    from fedfuse.parts.local import Batch, Hooks, Objective
    from fedfuse.parts.merge import Merge, Merged
    from fedfuse.parts.merge.base import WeightedMerge
    from fedfuse.parts.screen import Screen, Screened
    from fedfuse.parts.sources import SourceSettings
    from fedfuse.parts.start import Start
    from fedfuse.runtime.optimizers import Optimizer


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'fedfuse' has no attribute '{name}'")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return __all__
