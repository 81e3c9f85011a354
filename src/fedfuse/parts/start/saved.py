"""Weights that an earlier run left: a model file of fedfuse for each prototype that shall not begin at random."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from fedfuse.core.errors import ConfigError
from fedfuse.core.weights import Layout, Weights
from fedfuse.models.saved import load_model
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView
from fedfuse.parts.start.base import Start


class Saved(Start):
    """Go on from saved models (``final/*.safetensors`` of a run folder)."""

    kind: Literal["saved"] = "saved"
    is_work: ClassVar[bool] = False
    files: dict[str, Path] = Field(min_length=1, description="model files by prototype; the others begin at random")

    def check(self, context: CheckContext) -> None:
        for prototype, file in self.files.items():
            if prototype not in context.bank.prototypes:
                known = ", ".join(context.bank.prototypes)
                raise ConfigError(f"method.start.files names '{prototype}', but models has {known}")
            if Layout.of(load_model(file)) != context.bank.layout(prototype):
                raise ConfigError(f"{file} is a model of another architecture than '{prototype}'")

    def begin(self, view: ServerView, prototype: str) -> Weights:
        file = self.files.get(prototype)
        return self.fresh(view, prototype) if file is None else Weights.of(load_model(file))
