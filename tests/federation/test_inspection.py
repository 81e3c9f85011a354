"""Every way in which an answer can be unsound has its reason."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from fedfuse.core.messages import Task
from fedfuse.core.weights import Layout, Weights
from fedfuse.federation.inspection import ExpectedUpdate, reason_to_refuse
from tests.helpers import TinyNorm, make_bank, make_update, make_weights

WEIGHTS = make_weights(make_bank(mlp=TinyNorm()), "mlp", 1)
TASK = Task(3, 7, "mlp", WEIGHTS)
SOUND = make_update(WEIGHTS, client=7, number=3, extras={"c": torch.ones(2), "n": torch.tensor(3)})
DUE = {"c": (2,), "n": ()}


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
        ({"round": 2}, "answers round 2, client 7, 'mlp' instead of round 3, client 7, 'mlp'"),
        ({"client": 8}, "client 8"),
        ({"prototype": "cnn"}, "'cnn'"),
        ({"weights": renamed()}, "names or shapes"),
        ({"weights": turned()}, "names or shapes"),
        ({"weights": without_buffers()}, "names or shapes"),
        ({"weights": Weights(WEIGHTS.flat.double(), WEIGHTS.layout)}, "torch.float64, expected torch.float32"),
        ({"weights": Weights(WEIGHTS.flat.half(), WEIGHTS.layout)}, "torch.float16"),
        ({"weights": poisoned(float("nan"))}, "not finite"),
        ({"weights": poisoned(float("inf"))}, "not finite"),
        ({"weights": poisoned(float("-inf"), at=-1)}, "not finite"),
        ({"examples": 0}, "claims 0 examples"),
        ({"examples": -5}, "claims -5 examples"),
        ({"examples": 10**15}, "claims"),
        ({"extras": {"c": torch.tensor([1.0, float("nan")]), "n": torch.tensor(3)}}, "extra 'c' is not finite"),
        ({"extras": {"c": torch.ones(2)}}, "brings extras {'c': (2,)}, expected {'c': (2,), 'n': ()}"),
        ({"extras": {"c": torch.ones(3), "n": torch.tensor(3)}}, "'c': (3,)"),
        ({"extras": {}}, "brings extras {}"),
        ({"extras": {**SOUND.extras, "more": torch.ones(1)}}, "'more': (1,)"),
    ],
)
def test_faults(changes, reason):
    assert reason in reason_to_refuse(
        dataclasses.replace(SOUND, **changes), TASK, ExpectedUpdate(WEIGHTS.layout, DUE, {})
    )
