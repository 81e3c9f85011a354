"""A bound on how far one client can pull: its update is scaled down to a norm of at most ``norm``.

    y <- x + (y - x) min(1, S / ||y - x||)      x: the weights that the client received, y: those it trained

Only parameters are updates; BatchNorm statistics travel as they are. Of predictions, the whole table is the update.

With ``quantile`` the server looks for the norm by itself (Andrew et al., Differentially Private Learning with Adaptive
Clipping, NeurIPS 2021): each client says, with noise, whether its update was within S, and after the round

    S <- S exp(-rate (share - quantile))        share: of the clients that were, as far as the noise lets it show

so that in the end this share of the updates is not clipped. Each prototype has its own norm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.errors import DataError
from fedfuse.core.messages import Tensors, Update
from fedfuse.core.releases import Release
from fedfuse.parts.base import Shapes
from fedfuse.parts.context import ClientContext, ServerView
from fedfuse.parts.tensor_spec import TensorSpec
from fedfuse.parts.upload.updates import OnUpdates, shortened

NORM, INSIDE = "norm", "inside"
"""What the server sends to clients that look for the norm together with it, and what they answer."""
FAR = 8
"""Deviations beyond which noise practically never is, and is cut off."""

LEAST, MOST = 1e-20, 1e20
"""Norms between which an update and its noise have a float32 each; zeros of an update would keep their signs."""


class Clip(OnUpdates):
    """Updates of bounded length."""

    kind: Literal["clip"] = "clip"
    norm: float = Field(gt=0, description="S: the longest update that a client may send; with a quantile, at first")
    quantile: float | None = Field(
        None, gt=0, lt=1, description="share of the updates that shall be shorter than S, which the server then adapts"
    )
    rate: float = Field(0.2, gt=0, description="how fast S is adapted")
    bit_deviation: float = Field(
        2.5, ge=0, description="noise on what a client says about the length of its update, which is 1/2 or -1/2"
    )

    @property
    def release(self) -> Release | None:
        """What a client gives away by saying whether its update is within S."""
        return None if self.quantile is None else Release(2 * self.bit_deviation)

    def changed(self, update: Tensor, client: ClientContext) -> Tensor:
        norm, length = self.longest(client), _length(update)
        return update if length <= norm else shortened(update, norm / length)

    def longest(self, client: ClientContext) -> float:
        """S; a server that says one with which noise would be no noise gets no answer."""
        if self.quantile is None:
            return self.norm
        told = client.received[NORM]
        if told.numel() != 1 or not LEAST <= float(told) <= MOST:
            raise DataError(f"the norm that the server sent for clip is no number from {LEAST:g} to {MOST:g}")
        return float(told)

    def aside(self, update: Tensor, client: ClientContext) -> Tensors:
        if self.quantile is None:
            return {}
        inside = 0.5 if _length(update) <= self.longest(client) else -0.5
        said = client.secret.child(INSIDE).noised(torch.tensor(inside), self.bit_deviation)
        return {INSIDE: said.clamp(-self._farthest, self._farthest)}

    def aside_spec(self) -> Shapes:
        return {} if self.quantile is None else {INSIDE: TensorSpec((), least=-self._farthest, most=self._farthest)}

    def broadcast(self, view: ServerView, chosen: Mapping[int, str]) -> Mapping[int, Tensors]:
        if self.quantile is None:
            return {}
        return {client: {NORM: self._now(view, prototype)} for client, prototype in chosen.items()}

    def after_round(self, view: ServerView, updates: Sequence[Update]) -> Tensors:
        if self.quantile is None:
            return view.memory
        said: dict[str, list[Tensor]] = {}
        for update in updates:
            said.setdefault(update.prototype, []).append(update.extras[INSIDE].double())
        moved = {p: self._moved(self._now(view, p), torch.stack(own)) for p, own in said.items()}
        return {**view.memory, **moved}

    def _now(self, view: ServerView, prototype: str) -> Tensor:
        return view.memory.get(prototype, torch.tensor(self.norm, dtype=torch.float64))

    def _moved(self, norm: Tensor, said: Tensor) -> Tensor:
        """The norm after a round; noise, or a liar, moves it no further than a round of honest clients could."""
        assert self.quantile is not None
        share = float(said.mean() + 0.5)
        return (norm * math.exp(-self.rate * (min(max(share, 0.0), 1.0) - self.quantile))).clamp(LEAST, MOST)

    @property
    def _farthest(self) -> float:
        return 0.5 + FAR * self.bit_deviation


def _length(update: Tensor) -> float:
    return float(update.double().norm())
