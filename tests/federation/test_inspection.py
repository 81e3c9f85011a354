"""Every way in which an answer can be unsound has its reason."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from fedfuse.core.messages import Task
from fedfuse.core.weights import Layout, Weights
from fedfuse.federation.inspection import ExpectedUpdate, reason_to_refuse
from fedfuse.parts.tensor_spec import TensorSpec
from tests.helpers import TinyNorm, make_bank, make_update, make_weights

WEIGHTS = make_weights(make_bank(mlp=TinyNorm()), "mlp", 1)
TASK = Task(3, 7, "mlp", WEIGHTS)
SOUND = make_update(WEIGHTS, client=7, number=3, extras={"c": torch.ones(2), "n": torch.tensor(3)})
DUE = {"c": (2,), "n": TensorSpec((), torch.int64, least=0)}


def poisoned(value, at=0):
    flat = WEIGHTS.flat.clone()
    flat[at] = value
    return Weights(flat, WEIGHTS.layout)


def renamed():
    (first, shape), *rest = WEIGHTS.layout.parameters
    return Weights(WEIGHTS.flat, Layout(((first + "x", shape), *rest), WEIGHTS.layout.buffers))


def turned():
    (first, shape), *rest = WEIGHTS.layout.parameters
    return Weights(WEIGHTS.flat, Layout(((first, shape[::-1]), *rest), WEIGHTS.layout.buffers))


def without_buffers():
    return Weights(WEIGHTS.parameters, Layout(WEIGHTS.layout.parameters, ()))


def test_a_sound_answer_has_no_fault():
    assert reason_to_refuse(SOUND, TASK, ExpectedUpdate(WEIGHTS.layout, DUE, {})) is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"round": 2}, "answers for another round"),
        ({"client": 8}, "answers for another client"),
        ({"prototype": "cnn"}, "answers for another prototype"),
        ({"weights": renamed()}, "names or shapes"),
        ({"weights": turned()}, "names or shapes"),
        ({"weights": without_buffers()}, "names or shapes"),
        ({"weights": Weights(WEIGHTS.flat.double(), WEIGHTS.layout)}, "weights are float64, expected float32"),
        ({"weights": Weights(WEIGHTS.flat.half(), WEIGHTS.layout)}, "weights are float16"),
        ({"weights": poisoned(float("nan"))}, "not finite"),
        ({"weights": poisoned(float("inf"))}, "not finite"),
        ({"weights": poisoned(float("-inf"), at=-1)}, "not finite"),
        ({"weights": poisoned(1e30)}, "weights are above 1e+15"),
        ({"weights": poisoned(-1.0, at=-1)}, "weights have a negative variance"),
        ({"examples": 0}, "claims fewer than 1 or more than 1000000000000 examples"),
        ({"examples": -5}, "claims"),
        ({"examples": 10**15}, "claims"),
        ({"examples": 2.5}, "no whole number"),
        ({"examples": True}, "no whole number"),
        ({"extras": {"c": torch.tensor([1.0, float("nan")]), "n": torch.tensor(3)}}, "extra 'c' is not finite"),
        ({"extras": {"c": torch.ones(2)}}, "lacks 1 of 2 extras, such as 'n'"),
        ({"extras": {"c": torch.ones(3), "n": torch.tensor(3)}}, "extra 'c' is of another shape than (2,)"),
        ({"extras": {"c": torch.ones(2), "n": torch.tensor(-3)}}, "extra 'n' is below 0"),
        ({"extras": {"c": torch.ones(2), "n": torch.tensor(3.0)}}, "extra 'n' is float32, expected int64"),
        ({"extras": {}}, "lacks 2 of 2 extras, such as 'c'"),
        ({"extras": {**SOUND.extras, "more": torch.ones(1)}}, "brings extras that were not asked for: 1"),
        ({"test_outputs": {"p": torch.ones(1)}}, "brings test outputs that were not asked for: 1"),
    ],
)
def test_faults(changes, reason):
    assert reason in reason_to_refuse(
        dataclasses.replace(SOUND, **changes), TASK, ExpectedUpdate(WEIGHTS.layout, DUE, {})
    )
