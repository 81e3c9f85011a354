"""Trackers: programs that keep the curves of many runs. Each is a thin session behind one section of ``track``.

A tracker changes nothing in a run. What is of one's own comes by its address, as any part does.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator

from fedfuse.core.choice import OneOf
from fedfuse.report.trackers.base import Ending, Session, TrackedRun, Tracker
from fedfuse.report.trackers.mlflow import Mlflow
from fedfuse.report.trackers.tensorboard import TensorBoard
from fedfuse.report.trackers.trackio import Trackio
from fedfuse.report.trackers.wandb import WeightsAndBiases


def _by_name(value: Any) -> Any:
    """``mlflow`` is short for ``{kind: mlflow}``."""
    return {"kind": value} if isinstance(value, str) else value


def as_list(value: Any) -> Any:
    """One tracker is a list of one."""
    return [value] if isinstance(value, str | Mapping | Tracker) else value


AnyTracker = Annotated[Tracker, OneOf(TensorBoard, Mlflow, WeightsAndBiases, Trackio), BeforeValidator(_by_name)]

__all__ = [
    "AnyTracker",
    "Ending",
    "Mlflow",
    "Session",
    "TensorBoard",
    "TrackedRun",
    "Tracker",
    "Trackio",
    "WeightsAndBiases",
    "as_list",
]
