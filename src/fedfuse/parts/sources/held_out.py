"""The experiment's own public share."""

from __future__ import annotations

from typing import Literal

from fedfuse.core.errors import ConfigError
from fedfuse.parts.sources.base import FiniteSource, Surroundings, make_source
from fedfuse.runtime.source import Source


class HeldOut(FiniteSource):
    """The ``public`` share of the training data, kept by the server and stripped of its labels."""

    kind: Literal["held_out"] = "held_out"

    def open(self, surroundings: Surroundings) -> Source:
        if not len(surroundings.public):
            raise ConfigError("source held_out needs data.public above 0: the share of examples kept for distillation")
        public, key = surroundings.public, surroundings.key
        inputs, labels = self.part_of(public.inputs, key), self.part_of(public.labels, key)
        return make_source("held_out", inputs, surroundings.transform, surroundings, labels=labels)
