"""Federated learning by distillation: fuse what many parties learnt into one model per architecture."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fedfuse.core.version import __version__

__all__ = [
    "Architecture",
    "Attack",
    "Audit",
    "Batch",
    "ByOutputs",
    "CheckContext",
    "Classifier",
    "ClientContext",
    "ClientResult",
    "Clients",
    "Comparison",
    "ConfigError",
    "DataError",
    "Engine",
    "EngineSettings",
    "Estimate",
    "EventLog",
    "Expected",
    "Experiment",
    "FedfuseError",
    "Fuse",
    "FuseResult",
    "Fused",
    "Hooks",
    "Key",
    "LastRound",
    "LayeredClassifier",
    "Merge",
    "Merged",
    "Method",
    "Metric",
    "Objective",
    "Optimizer",
    "Packed",
    "Partition",
    "Predictions",
    "PrivacyPlan",
    "Protocol",
    "Provenance",
    "Range",
    "Recipe",
    "RoundModels",
    "RoundRecord",
    "RunResult",
    "Said",
    "Scores",
    "Screen",
    "Screened",
    "ServerView",
    "Source",
    "SourceSettings",
    "Spread",
    "Start",
    "StopRun",
    "Surroundings",
    "Sweep",
    "Task",
    "Teacher",
    "TeacherKind",
    "TensorSpec",
    "Update",
    "Upload",
    "WeightedMerge",
    "Weights",
    "__version__",
    "as_parameters",
    "audit",
    "bench",
    "check_data",
    "compare",
    "doctor",
    "estimate",
    "expected_seconds",
    "fuse",
    "kl",
    "list_datasets",
    "list_keys",
    "list_methods",
    "list_models",
    "list_parts",
    "list_presets",
    "load_model",
    "load_run",
    "load_runs",
    "make_source",
    "plan_privacy",
    "replay",
    "run",
    "run_all",
    "search",
    "starter",
    "sweep",
    "verify_receipts",
    "watch",
    "write_receipts",
]

_PLACES = {
    "Architecture": "fedfuse.models",
    "Attack": "fedfuse.federation.attack",
    "Audit": "fedfuse.experiment.auditing",
    "Batch": "fedfuse.parts.local",
    "ByOutputs": "fedfuse.parts.scores",
    "CheckContext": "fedfuse.parts.base",
    "Classifier": "fedfuse.models",
    "ClientContext": "fedfuse.parts.context",
    "ClientResult": "fedfuse.parts.protocol",
    "Clients": "fedfuse.federation.client",
    "Comparison": "fedfuse.experiment.comparison",
    "ConfigError": "fedfuse.core.errors",
    "DataError": "fedfuse.core.errors",
    "Engine": "fedfuse.federation",
    "EngineSettings": "fedfuse.engines",
    "Estimate": "fedfuse.experiment.estimate",
    "EventLog": "fedfuse.federation.events",
    "Expected": "fedfuse.parts.protocol",
    "Experiment": "fedfuse.experiment.run",
    "FedfuseError": "fedfuse.core.errors",
    "Fuse": "fedfuse.parts.fuse",
    "FuseResult": "fedfuse.fusing.fuse",
    "Fused": "fedfuse.parts.fuse",
    "Hooks": "fedfuse.parts.local",
    "Key": "fedfuse.core.randomness",
    "LastRound": "fedfuse.experiment.replay",
    "LayeredClassifier": "fedfuse.models.classifier",
    "Merge": "fedfuse.parts.merge",
    "Merged": "fedfuse.parts.merge",
    "Method": "fedfuse.methods",
    "Metric": "fedfuse.parts.metrics",
    "Objective": "fedfuse.parts.local",
    "Optimizer": "fedfuse.runtime.optimizers",
    "Packed": "fedfuse.parts.upload",
    "Partition": "fedfuse.data",
    "Predictions": "fedfuse.parts.metrics",
    "PrivacyPlan": "fedfuse.experiment.privacy_plan",
    "Protocol": "fedfuse.parts.protocol",
    "Provenance": "fedfuse.experiment.provenance",
    "Range": "fedfuse.experiment.variants",
    "Recipe": "fedfuse.federation",
    "RoundModels": "fedfuse.parts.teachers",
    "RoundRecord": "fedfuse.federation",
    "RunResult": "fedfuse.experiment.result",
    "Said": "fedfuse.parts.scores",
    "Scores": "fedfuse.parts.scores",
    "Screen": "fedfuse.parts.screen",
    "Screened": "fedfuse.parts.screen",
    "ServerView": "fedfuse.parts.context",
    "Source": "fedfuse.runtime.source",
    "SourceSettings": "fedfuse.parts.sources",
    "Spread": "fedfuse.experiment.comparison",
    "Start": "fedfuse.parts.start",
    "StopRun": "fedfuse.core.errors",
    "Surroundings": "fedfuse.parts.sources",
    "Sweep": "fedfuse.experiment.sweep",
    "Task": "fedfuse.core.messages",
    "Teacher": "fedfuse.parts.teachers",
    "TeacherKind": "fedfuse.parts.teachers",
    "TensorSpec": "fedfuse.parts.tensor_spec",
    "Update": "fedfuse.core.messages",
    "Upload": "fedfuse.parts.upload",
    "WeightedMerge": "fedfuse.parts.merge.base",
    "Weights": "fedfuse.core.weights",
    "as_parameters": "fedfuse.core.weights",
    "audit": "fedfuse.experiment.auditing",
    "bench": "fedfuse.experiment.bench.measure",
    "check_data": "fedfuse.experiment.data_check",
    "compare": "fedfuse.experiment.api",
    "doctor": "fedfuse.experiment.doctor",
    "estimate": "fedfuse.experiment.api",
    "expected_seconds": "fedfuse.experiment.cost",
    "fuse": "fedfuse.fusing.api",
    "kl": "fedfuse.runtime.losses",
    "list_datasets": "fedfuse.experiment.listing",
    "list_keys": "fedfuse.experiment.listing",
    "list_methods": "fedfuse.experiment.listing",
    "list_models": "fedfuse.experiment.listing",
    "list_parts": "fedfuse.experiment.listing",
    "list_presets": "fedfuse.experiment.listing",
    "load_model": "fedfuse.models.saved",
    "load_run": "fedfuse.experiment.stored",
    "load_runs": "fedfuse.experiment.looking.gathering",
    "make_source": "fedfuse.parts.sources.base",
    "plan_privacy": "fedfuse.experiment.privacy_plan",
    "replay": "fedfuse.experiment.replay",
    "run": "fedfuse.experiment.api",
    "run_all": "fedfuse.experiment.api",
    "search": "fedfuse.experiment.searching",
    "starter": "fedfuse.experiment.starter",
    "sweep": "fedfuse.experiment.api",
    "watch": "fedfuse.experiment.looking.watching",
    "verify_receipts": "fedfuse.core.receipt_lines",
    "write_receipts": "fedfuse.experiment.receipts",
}
"""Where a name is imported from when it is first used: torch takes seconds, which ``fedfuse --help`` need not pay."""

if TYPE_CHECKING:
    from fedfuse.core.errors import ConfigError, DataError, FedfuseError, StopRun
    from fedfuse.core.messages import Task, Update
    from fedfuse.core.randomness import Key
    from fedfuse.core.receipt_lines import verify_receipts
    from fedfuse.core.weights import Weights, as_parameters
    from fedfuse.data import Partition
    from fedfuse.engines import EngineSettings
    from fedfuse.experiment.api import compare, estimate, run, run_all, sweep
    from fedfuse.experiment.auditing import Audit, audit
    from fedfuse.experiment.bench.measure import bench
    from fedfuse.experiment.comparison import Comparison, Spread
    from fedfuse.experiment.cost import expected_seconds
    from fedfuse.experiment.data_check import check_data
    from fedfuse.experiment.doctor import doctor
    from fedfuse.experiment.estimate import Estimate
    from fedfuse.experiment.listing import (
        list_datasets,
        list_keys,
        list_methods,
        list_models,
        list_parts,
        list_presets,
    )
    from fedfuse.experiment.looking.gathering import load_runs
    from fedfuse.experiment.looking.watching import watch
    from fedfuse.experiment.privacy_plan import PrivacyPlan, plan_privacy
    from fedfuse.experiment.provenance import Provenance
    from fedfuse.experiment.receipts import write_receipts
    from fedfuse.experiment.replay import LastRound, replay
    from fedfuse.experiment.result import RunResult
    from fedfuse.experiment.run import Experiment
    from fedfuse.experiment.searching import search
    from fedfuse.experiment.starter import starter
    from fedfuse.experiment.stored import load_run
    from fedfuse.experiment.sweep import Sweep
    from fedfuse.experiment.variants import Range
    from fedfuse.federation import Engine, Recipe, RoundRecord
    from fedfuse.federation.attack import Attack
    from fedfuse.federation.client import Clients
    from fedfuse.federation.events import EventLog
    from fedfuse.fusing.api import fuse
    from fedfuse.fusing.fuse import FuseResult
    from fedfuse.methods import Method
    from fedfuse.models import Architecture, Classifier
    from fedfuse.models.classifier import LayeredClassifier
    from fedfuse.models.saved import load_model
    from fedfuse.parts.base import CheckContext
    from fedfuse.parts.context import ClientContext, ServerView
    from fedfuse.parts.fuse import Fuse, Fused
    from fedfuse.parts.local import Batch, Hooks, Objective
    from fedfuse.parts.merge import Merge, Merged
    from fedfuse.parts.merge.base import WeightedMerge
    from fedfuse.parts.metrics import Metric, Predictions
    from fedfuse.parts.protocol import ClientResult, Expected, Protocol
    from fedfuse.parts.scores import ByOutputs, Said, Scores
    from fedfuse.parts.screen import Screen, Screened
    from fedfuse.parts.sources import SourceSettings, Surroundings
    from fedfuse.parts.sources.base import make_source
    from fedfuse.parts.start import Start
    from fedfuse.parts.teachers import RoundModels, Teacher, TeacherKind
    from fedfuse.parts.tensor_spec import TensorSpec
    from fedfuse.parts.upload import Packed, Upload
    from fedfuse.runtime.losses import kl
    from fedfuse.runtime.optimizers import Optimizer
    from fedfuse.runtime.source import Source


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'fedfuse' has no attribute '{name}'")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return __all__
