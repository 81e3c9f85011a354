"""The check that every update passes before it touches any state."""

from __future__ import annotations

from fedfuse.core.messages import Task, Update

MOST_EXAMPLES = 10**12


def fault(update: Update, task: Task) -> str | None:
    """Why this answer to this task must be refused, or None if it is sound."""
    if (update.round, update.client, update.prototype) != (task.round, task.client, task.prototype):
        return (
            f"answers round {update.round}, client {update.client}, '{update.prototype}' "
            f"instead of round {task.round}, client {task.client}, '{task.prototype}'"
        )
    if update.weights.layout != task.weights.layout:
        return "names or shapes of its weights differ from the prototype's"
    if update.weights.flat.dtype != task.weights.flat.dtype:
        return f"weights are {update.weights.flat.dtype}, expected {task.weights.flat.dtype}"
    if not bool(update.weights.flat.isfinite().all()):
        return "weights are not finite"
    if not 1 <= update.examples <= MOST_EXAMPLES:
        return f"claims {update.examples} examples"
    for name, tensor in update.extras.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            return f"extra '{name}' is not finite"
    return None
