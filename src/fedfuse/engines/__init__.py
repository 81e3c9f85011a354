"""Simulation backends and real deployments: where clients run.

An engine takes Tasks and yields Updates; no method knows which one runs it.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator

from fedfuse.core.choice import OneOf
from fedfuse.engines.base import EngineSettings
from fedfuse.engines.flower import FlowerEngineSettings
from fedfuse.engines.local import LocalEngine, LocalEngineSettings
from fedfuse.engines.ray.engine import RayEngineSettings


def _local_unless_said(value: Any) -> Any:
    return {"kind": "local", **value} if isinstance(value, Mapping) else value


AnyEngine = Annotated[
    EngineSettings,
    OneOf(LocalEngineSettings, RayEngineSettings, FlowerEngineSettings),
    BeforeValidator(_local_unless_said),
]

__all__ = [
    "AnyEngine",
    "EngineSettings",
    "FlowerEngineSettings",
    "LocalEngine",
    "LocalEngineSettings",
    "RayEngineSettings",
]
