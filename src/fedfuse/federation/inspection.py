"""The check that every update passes before it touches any state.

A reason to refuse is for a log that others read: it is short, and nothing in it was written by the party.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.weights import Layout, Weights
from fedfuse.parts.base import Shapes
from fedfuse.parts.tensor_spec import LARGEST, MOST_EXAMPLES, TensorSpec

MOST_METRICS = 16
METRIC_NAME = re.compile(r"[\w./-]{1,40}", re.ASCII)
VARIANCE = "running_var"
"""What torch calls a BatchNorm layer's variance, which no training makes negative."""


@dataclass(frozen=True)
class ExpectedUpdate:
    """What an answer must bring: weights of a layout, extras of these shapes, and of those about test inputs all or
    none, because a client may have no test inputs."""

    layout: Layout
    extras: Shapes
    test_outputs: Shapes


def reason_to_refuse(update: Update, task: Task, expected: ExpectedUpdate) -> str | None:
    """Why this answer to this task must be refused, or None if it is sound."""
    about_test_inputs = expected.test_outputs if update.test_outputs else {}
    return (
        _another_task(update, task)
        or _unsound_weights(update.weights, expected.layout)
        or unsound_number(update.examples)
        or _unsound_tensors("extra", update.extras, expected.extras)
        or _unsound_tensors("test output", update.test_outputs, about_test_inputs)
    )


def with_sound_metrics(update: Update) -> Update:
    """The update with those of its metrics that a log can take: few, with plain names, finite."""
    brought = update.metrics if isinstance(update.metrics, Mapping) else {}
    sound = {name: value for name, value in brought.items() if _is_metric(name, value)}
    if len(sound) == len(brought) <= MOST_METRICS and brought is update.metrics:
        return update
    return replace(update, metrics=dict(list(sound.items())[:MOST_METRICS]))


def _is_metric(name: object, value: object) -> bool:
    is_number = isinstance(value, int | float) and -LARGEST <= value <= LARGEST
    return is_number and isinstance(name, str) and METRIC_NAME.fullmatch(name) is not None


def _another_task(update: Update, task: Task) -> str | None:
    for what in ("round", "client", "prototype"):
        if getattr(update, what) != getattr(task, what):
            return f"answers for another {what}"
    return None


def _unsound_weights(weights: Weights, layout: Layout) -> str | None:
    if weights.layout != layout:
        return "names or shapes of its weights differ from the prototype's"
    here = weights.here
    if fault := TensorSpec((layout.size,)).fault(here.flat):
        return f"weights are {fault}"
    variances = [name for name, _ in layout.buffers if name.endswith(VARIANCE)]
    if any(bool((here[name] < 0).any()) for name in variances):
        return "weights have a negative variance"
    return None


def unsound_number(examples: object) -> str | None:
    """Why this cannot be how many examples a client has, or None."""
    if not isinstance(examples, Integral) or isinstance(examples, bool):
        return "its number of examples is no whole number"
    return None if 1 <= int(examples) <= MOST_EXAMPLES else f"claims fewer than 1 or more than {MOST_EXAMPLES} examples"


def _unsound_tensors(what: str, brought: Tensors, expected: Shapes) -> str | None:
    if missing := expected.keys() - brought.keys():
        return f"lacks {len(missing)} of {len(expected)} {what}s, such as '{min(missing)}'"
    if more := len(brought.keys() - expected.keys()):
        return f"brings {what}s that were not asked for: {more}"
    for name, shape in expected.items():
        if fault := TensorSpec.of(shape).fault(brought[name]):
            return f"{what} '{name}' is {fault}"
    return None
