"""Partial sharing by parameters' names, as FedPer (Arivazhagan et al., Federated Learning with Personalization Layers,
2019): what matches a pattern travels, the rest stays with the client.

A client goes on with its own rest at its next visit. The server has the rest as it began, so its own model is good for
what was shared; clients' own models are what to look at (``evaluation.clients``).
"""

from __future__ import annotations

import re
from typing import ClassVar, Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task, Tensors
from fedfuse.core.weights import Layout, Weights
from fedfuse.parts.base import CheckContext, Shapes
from fedfuse.parts.context import ClientContext
from fedfuse.parts.protocol.base import WEIGHTS
from fedfuse.parts.tensor_spec import TensorSpec
from fedfuse.parts.upload.base import Packed, Upload
from fedfuse.runtime.bank import ModelBank

SHARED, OWN = "shared", "own"


class Partial(Upload):
    """Only parameters and statistics whose names match travel up."""

    kind: Literal["partial"] = "partial"
    only_repacks: ClassVar[bool] = True
    needs_whole_model: ClassVar[bool] = True
    remembers_weights: ClassVar[bool] = True
    names: str = Field(description="a regular expression that is searched in the names of parameters")

    @field_validator("names")
    @classmethod
    def _is_a_pattern(cls, names: str) -> str:
        try:
            re.compile(names)
        except re.error as error:
            raise ValueError(f"'{names}' is no regular expression: {error}") from None
        return names

    def check(self, context: CheckContext) -> None:
        for prototype in context.bank.prototypes:
            shared = self._mask(context.bank.layout(prototype))
            if not shared.any() or shared.all():
                what = "every parameter" if shared.all() else "no parameter"
                raise ConfigError(f"method.upload partial: '{self.names}' is found in {what} of '{prototype}'")

    def begin(self, weights: Weights, state: Tensors) -> Weights:
        if OWN not in state:
            return weights
        return Weights(weights.flat.masked_scatter(~self._mask(weights.layout), state[OWN]), weights.layout)

    def pack(self, sent: Tensors, client: ClientContext) -> Packed:
        layout = client.task.weights.layout
        shared, own = self._mask(layout), Weights.of(client.model, layout).flat
        return Packed({SHARED: sent[WEIGHTS][shared]}, {OWN: own[~shared]})

    def spec(self, sent: Shapes, prototype: str, bank: ModelBank) -> Shapes:
        whole = TensorSpec.of(sent[WEIGHTS])
        return {SHARED: whole.resized((int(self._mask(bank.layout(prototype)).sum()),))}

    def unpack(self, came: Tensors, sent: Shapes, task: Task, bank: ModelBank) -> Tensors:
        shared = self._mask(task.weights.layout)
        return {WEIGHTS: task.weights.flat.masked_scatter(shared, came[SHARED].float())}

    def _mask(self, layout: Layout) -> Tensor:
        found = [torch.full((entry.size,), bool(re.search(self.names, entry.name))) for entry in layout.entries]
        return torch.cat(found)
