"""Federated learning by distillation: fuse what many parties learnt into one model per architecture."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fedfuse.core.version import __version__

__all__ = [
    "Architecture",
    "Batch",
    "Comparison",
    "ConfigError",
    "DataError",
    "Engine",
    "EngineSettings",
    "Experiment",
    "FedfuseError",
    "Fuse",
    "Fused",
    "Hooks",
    "Key",
    "LastRound",
    "Merge",
    "Merged",
    "Method",
    "Objective",
    "Optimizer",
    "Partition",
    "Provenance",
    "Recipe",
    "RoundRecord",
    "RunResult",
    "Screen",
    "Screened",
    "ServerView",
    "SourceSettings",
    "Spread",
    "Start",
    "Task",
    "Teacher",
    "TeacherKind",
    "Update",
    "WeightedMerge",
    "Weights",
    "__version__",
    "check_data",
    "compare",
    "expected_seconds",
    "list_datasets",
    "list_methods",
    "list_models",
    "list_presets",
    "load_model",
    "load_run",
    "replay",
    "run",
    "run_all",
]

_PLACES = {
    "Architecture": "fedfuse.models",
    "Batch": "fedfuse.parts.local",
    "Comparison": "fedfuse.experiment.comparison",
    "ConfigError": "fedfuse.core.errors",
    "DataError": "fedfuse.core.errors",
    "Engine": "fedfuse.federation",
    "EngineSettings": "fedfuse.engines",
    "Experiment": "fedfuse.experiment.run",
    "FedfuseError": "fedfuse.core.errors",
    "Fuse": "fedfuse.parts.fuse",
    "Fused": "fedfuse.parts.fuse",
    "Hooks": "fedfuse.parts.local",
    "Key": "fedfuse.core.randomness",
    "LastRound": "fedfuse.experiment.replay",
    "Merge": "fedfuse.parts.merge",
    "Merged": "fedfuse.parts.merge",
    "Method": "fedfuse.methods",
    "Objective": "fedfuse.parts.local",
    "Optimizer": "fedfuse.runtime.optimizers",
    "Partition": "fedfuse.data",
    "Provenance": "fedfuse.experiment.provenance",
    "Recipe": "fedfuse.federation",
    "RoundRecord": "fedfuse.federation",
    "RunResult": "fedfuse.experiment.result",
    "Screen": "fedfuse.parts.screen",
    "Screened": "fedfuse.parts.screen",
    "ServerView": "fedfuse.parts.context",
    "SourceSettings": "fedfuse.parts.sources",
    "Spread": "fedfuse.experiment.comparison",
    "Start": "fedfuse.parts.start",
    "Task": "fedfuse.core.messages",
    "Teacher": "fedfuse.parts.teachers",
    "TeacherKind": "fedfuse.parts.teachers",
    "Update": "fedfuse.core.messages",
    "WeightedMerge": "fedfuse.parts.merge.base",
    "Weights": "fedfuse.core.weights",
    "check_data": "fedfuse.experiment.data_check",
    "compare": "fedfuse.experiment.api",
    "expected_seconds": "fedfuse.experiment.cost",
    "list_datasets": "fedfuse.experiment.listing",
    "list_methods": "fedfuse.experiment.listing",
    "list_models": "fedfuse.experiment.listing",
    "list_presets": "fedfuse.experiment.listing",
    "load_model": "fedfuse.models.saved",
    "load_run": "fedfuse.experiment.stored",
    "replay": "fedfuse.experiment.replay",
    "run": "fedfuse.experiment.api",
    "run_all": "fedfuse.experiment.api",
}
"""Where a name is imported from when it is first used: torch takes seconds, which ``fedfuse --help`` need not pay."""

if TYPE_CHECKING:
    from fedfuse.core.errors import ConfigError, DataError, FedfuseError
    from fedfuse.core.messages import Task, Update
    from fedfuse.core.randomness import Key
    from fedfuse.core.weights import Weights
    from fedfuse.data import Partition
    from fedfuse.engines import EngineSettings
    from fedfuse.experiment.api import compare, run, run_all
    from fedfuse.experiment.comparison import Comparison, Spread
    from fedfuse.experiment.cost import expected_seconds
    from fedfuse.experiment.data_check import check_data
    from fedfuse.experiment.listing import list_datasets, list_methods, list_models, list_presets
    from fedfuse.experiment.provenance import Provenance
    from fedfuse.experiment.replay import LastRound, replay
    from fedfuse.experiment.result import RunResult
    from fedfuse.experiment.run import Experiment
    from fedfuse.experiment.stored import load_run
    from fedfuse.federation import Engine, Recipe, RoundRecord
    from fedfuse.methods import Method
    from fedfuse.models import Architecture
    from fedfuse.models.saved import load_model
    from fedfuse.parts.context import ServerView
    from fedfuse.parts.fuse import Fuse, Fused
    from fedfuse.parts.local import Batch, Hooks, Objective
    from fedfuse.parts.merge import Merge, Merged
    from fedfuse.parts.merge.base import WeightedMerge
    from fedfuse.parts.screen import Screen, Screened
    from fedfuse.parts.sources import SourceSettings
    from fedfuse.parts.start import Start
    from fedfuse.parts.teachers import Teacher, TeacherKind
    from fedfuse.runtime.optimizers import Optimizer


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'fedfuse' has no attribute '{name}'")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return __all__
