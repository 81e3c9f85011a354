"""CFD: clients start from what the student says, and keep nothing of their own examples."""

from __future__ import annotations

import pytest
import torch

from fedfuse.federation import Recipe
from fedfuse.runtime.predict import logits_on
from tests.helpers import CLASSES, make_federation, played, tiny_method

INPUTS = 40


def federation_of():
    recipe = Recipe.model_validate({key: part for key, part in tiny_method("cfd").items() if key != "name"})
    return make_federation(recipe=recipe, source=INPUTS)


def test_what_comes_down_is_the_students_quantised_answers():
    federation, sent = federation_of(), []
    train = federation.engine.train
    federation.engine.train = lambda tasks, states: (sent.append(tasks), train(tasks, states))[1]
    first = played(federation, 1)
    played(federation, 1, first)
    student = federation.bank.lend("mlp", first.server.weights["mlp"])
    answers = logits_on(federation.source, student).softmax(dim=1)
    for task in sent[1]:
        arrived = task.extras["protocol/consensus"].view(INPUTS, CLASSES).float() / 255
        assert torch.allclose(arrived, answers, atol=1 / 255)


def test_copies_have_not_seen_any_clients_examples():
    """So they are the same everywhere in round 1, where there is nothing to distil yet."""
    federation = federation_of()
    copies = [state["protocol/model"] for state in played(federation, 1).clients.values()]
    assert all(torch.equal(copy, federation.start().server.weights["mlp"].flat) for copy in copies)
    later = [state["protocol/model"] for state in played(federation, 2).clients.values()]
    assert not torch.equal(later[0], copies[0])


def test_the_ensemble_is_the_one_that_the_student_imitates():
    """With one bit, clients vote: the mean of their outputs would be another ensemble."""
    federation, heard = federation_of(), []
    collect = federation.engine.train
    federation.engine.train = lambda tasks, states: (heard.append(a := list(collect(tasks, states))), a)[1]
    record = played(federation, 1).server.history[-1]
    logits = [update.test_outputs["predictions"] for update, _ in heard[0]]
    votes = sum(torch.nn.functional.one_hot(one.argmax(dim=1), CLASSES) for one in logits)
    soft = sum(one.softmax(dim=1) for one in logits)
    right = [float((sums.argmax(dim=1) == federation.test.examples.labels).float().mean()) for sums in (votes, soft)]
    assert record.ensemble_accuracy == pytest.approx(right[0])
    assert right[0] != pytest.approx(right[1]), "or this shows nothing"


def test_without_a_student_there_is_nothing_to_distil():
    whole = {**federation_of().recipe.model_dump(mode="json"), "fuse": {"kind": "none"}}
    with pytest.raises(ValueError, match="fuse none trains none"):
        Recipe.model_validate(whole)
