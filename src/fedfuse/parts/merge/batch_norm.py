"""What happens to BatchNorm statistics when clients' weights are merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fedfuse.core.messages import Update
from fedfuse.core.weights import Weights
from fedfuse.parts.context import ServerView

BatchNormPolicy = Literal["average", "last", "reestimate", "batch"]
"""average: like every other weight. last: the last client's, as FedDF's released code. reestimate: computed
anew on the distillation source. batch: averaged, but evaluation normalises by each test batch."""


def settle(
    policy: BatchNormPolicy, view: ServerView, prototype: str, merged: Weights, updates: Sequence[Update]
) -> Weights:
    """The merged weights with their BatchNorm statistics settled by the policy."""
    if not merged.layout.buffers:
        return merged
    if policy == "last":
        return merged.with_buffers(updates[-1].weights.buffers)
    if policy == "reestimate" and view.source is not None:
        return view.reestimated(prototype, merged)
    return merged
