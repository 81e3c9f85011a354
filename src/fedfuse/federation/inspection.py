"""The check that every update passes before it touches any state."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from fedfuse.core.messages import Task, Update
from fedfuse.core.weights import Layout

MOST_EXAMPLES = 10**12


def fault(update: Update, task: Task, layout: Layout, extras: Mapping[str, tuple[int, ...]]) -> str | None:
    """Why this answer to this task must be refused, or None if it is sound.

    ``layout`` is that of the weights due, ``extras`` are the names and shapes due.
    """
    if (update.round, update.client, update.prototype) != (task.round, task.client, task.prototype):
        return (
            f"answers round {update.round}, client {update.client}, '{update.prototype}' "
            f"instead of round {task.round}, client {task.client}, '{task.prototype}'"
        )
    if update.weights.layout != layout:
        return "names or shapes of its weights differ from the prototype's"
    if update.weights.flat.dtype != torch.float32:
        return f"weights are {update.weights.flat.dtype}, expected torch.float32"
    if not bool(update.weights.flat.isfinite().all()):
        return "weights are not finite"
    if not 1 <= update.examples <= MOST_EXAMPLES:
        return f"claims {update.examples} examples"
    brought = {name: tuple(tensor.shape) for name, tensor in update.extras.items()}
    if brought != dict(extras):
        return f"brings extras {brought}, expected {dict(extras)}"
    for name, tensor in update.extras.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            return f"extra '{name}' is not finite"
    return None
