"""DS-FL, Cronus and CFD as wholes: what travels is what the papers say, and each one's mark is on the result."""

from __future__ import annotations

import math

import pytest
import torch

from fedfuse.federation import Recipe
from fedfuse.runtime.predict import logits_on
from tests.helpers import CLASSES, make_federation, played, tiny_method

INPUTS = 40
TABLE = 4 * INPUTS * CLASSES


def federation_of(name, **changes):
    method = tiny_method(name)
    method["exchange"] |= changes
    recipe = Recipe.model_validate({key: part for key, part in method.items() if key != "name"})
    return make_federation(recipe=recipe, source=INPUTS)


@pytest.mark.parametrize(
    ("name", "up", "down"),
    [
        ("ds-fl", TABLE, TABLE),
        ("cronus", TABLE, TABLE),
        ("cfd", INPUTS * math.ceil(math.log2(CLASSES)) // 8, INPUTS * CLASSES),
    ],
)
def test_bytes(name, up, down):
    federation = federation_of(name)
    history = played(federation, 3).server.history
    start = 4 * 4 * federation.bank.layout("mlp").size
    assert [r.bytes_up for r in history] == [4 * up] * 3
    assert [r.bytes_down for r in history] == [start, 4 * down, 4 * down]
    assert all(r.refused == () for r in history)


@pytest.mark.parametrize(("name", "has_student"), [("ds-fl", True), ("cfd", True), ("cronus", False)])
def test_who_has_a_model(name, has_student):
    federation = federation_of(name)
    start, end = federation.start().server.weights["mlp"], played(federation, 2).server.weights["mlp"]
    assert start.equals(end) is not has_student
    assert federation.recipe.has_server_model is has_student


def test_ds_fl_sharpens():
    """The consensus has less entropy than the mean of the same predictions."""

    def entropy(name, **changes):
        consensus = played(federation_of(name, **changes), 1).server.memory["exchange"]["consensus"]
        return float(-(consensus * consensus.clamp_min(1e-12).log()).sum(dim=1).mean())

    assert entropy("ds-fl") < entropy("ds-fl", temperature=None) - 0.1


def test_cfd_clients_start_from_what_the_student_says():
    """What travels down in round 2 is the student's own quantised answers, and all clients make the same copy of it."""
    federation = federation_of("cfd")
    sent = []
    train = federation.engine.train
    federation.engine.train = lambda tasks, states: (sent.append(tasks), train(tasks, states))[1]
    first = played(federation, 1)
    played(federation, 1, first)
    student = federation.bank.lend("mlp", first.server.weights["mlp"])
    answers = logits_on(federation.source, student).softmax(dim=1)
    for task in sent[1]:
        arrived = task.extras["consensus"].view(INPUTS, CLASSES).float() / 255
        assert torch.allclose(arrived, answers, atol=1 / 255)


def test_cronus_learns_both_at_every_step():
    """The same clients without a consensus, in round 2, take other steps."""
    with_it, alone = federation_of("cronus"), federation_of("cronus", digest=None)
    one, other = played(with_it, 1), played(alone, 1)
    assert torch.equal(one.clients[0]["exchange/model"], other.clients[0]["exchange/model"])  # the warm-up
    assert not torch.equal(
        played(with_it, 1, one).clients[0]["exchange/model"], played(alone, 1, other).clients[0]["exchange/model"]
    )
