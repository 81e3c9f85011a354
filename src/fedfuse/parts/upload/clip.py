"""A bound on how far one client can pull: its update is scaled down to a norm of at most ``norm``.

    y <- x + (y - x) min(1, S / ||y - x||)      x: the weights that the client received, y: those it trained

Only parameters are updates; BatchNorm statistics travel as they are.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import Tensor

from fedfuse.parts.context import ClientContext
from fedfuse.parts.upload.updates import OnUpdates


class Clip(OnUpdates):
    """Updates of bounded length."""

    kind: Literal["clip"] = "clip"
    norm: float = Field(gt=0, description="S: the longest update that a client may send")

    def changed(self, update: Tensor, client: ClientContext) -> Tensor:
        length = float(update.double().norm())
        return update if length <= self.norm else update * (self.norm / length)
