"""The check that every update passes before it touches any state."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fedfuse.core.messages import Task, Update
from fedfuse.core.weights import Layout, is_finite
from fedfuse.parts.base import Shapes

MOST_EXAMPLES = 10**12


@dataclass(frozen=True)
class ExpectedUpdate:
    """What an answer must bring: weights of a layout, extras of these shapes, and of those about test inputs all or
    none, because a client may have no test inputs."""

    layout: Layout
    extras: Shapes
    test_outputs: Shapes


def reason_to_refuse(update: Update, task: Task, expected: ExpectedUpdate) -> str | None:
    """Why this answer to this task must be refused, or None if it is sound."""
    if (update.round, update.client, update.prototype) != (task.round, task.client, task.prototype):
        return (
            f"answers round {update.round}, client {update.client}, '{update.prototype}' "
            f"instead of round {task.round}, client {task.client}, '{task.prototype}'"
        )
    if update.weights.layout != expected.layout:
        return "names or shapes of its weights differ from the prototype's"
    if update.weights.flat.dtype != torch.float32:
        return f"weights are {update.weights.flat.dtype}, expected torch.float32"
    if not update.weights.is_finite():
        return "weights are not finite"
    if not 1 <= update.examples <= MOST_EXAMPLES:
        return f"claims {update.examples} examples"
    parts = ((update.extras, [expected.extras]), (update.test_outputs, [expected.test_outputs, {}]))
    for brought, allowed in parts:
        shapes = {name: tuple(tensor.shape) for name, tensor in brought.items()}
        if shapes not in allowed:
            return f"brings extras {shapes}, expected {dict(allowed[0])}"
    for name, tensor in (*update.extras.items(), *update.test_outputs.items()):
        if tensor.is_floating_point() and not is_finite(tensor):
            return f"extra '{name}' is not finite"
    return None
