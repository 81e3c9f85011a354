"""FedAUX: scores travel once, and the students' target is the weighted mean of logits."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from fedfuse.core.errors import ConfigError
from fedfuse.experiment.config import validate
from fedfuse.federation import Recipe
from fedfuse.parts.teachers import Ensemble, Teacher
from tests.helpers import make_bank, make_federation, make_source, make_weights, played, tiny_method

INPUTS, NEGATIVES = 40, 8


def federation_of(**settings):
    method = tiny_method("fedaux")
    recipe = Recipe.model_validate({key: part for key, part in method.items() if key != "name"})
    return make_federation(recipe=recipe, source=INPUTS, **settings)


def test_bytes_are_fedavgs_and_scores_once():
    federation = federation_of()
    history = played(federation, 3).server.history
    weights = 4 * federation.bank.layout("mlp").size
    assert [r.bytes_up for r in history] == [4 * (weights + 4 * (INPUTS - NEGATIVES)), 4 * weights, 4 * weights]
    assert [r.bytes_down for r in history] == [4 * weights, 4 * weights, 4 * weights]


def test_a_late_client_judges_by_the_same_features_as_the_early_ones():
    federation = federation_of(clients_per_round=2)
    start = federation.start()
    sent = []
    train = federation.engine.train
    federation.engine.train = lambda tasks, states: (sent.extend(tasks), train(tasks, states))[1]
    played(federation, 4, start)
    first_visits = {task.client: task for task in reversed(sent)}
    assert max(task.round for task in first_visits.values()) > 1
    first = start.server.weights["mlp"].flat
    for task in first_visits.values():
        assert torch.equal(task.extras.get("scores/extractor", task.weights.flat), first)
        assert ("scores/extractor" in task.extras) == (task.round > 1), "in round 1 it is sent them anyway"
    assert all("scores/extractor" not in task.extras for task in sent if task not in first_visits.values())


def test_the_target_is_the_softmax_of_weighted_logits():
    """sigma( sum_k s_k(x) f_k(x) / sum_k s_k(x) ), against a loop over inputs."""
    bank, source = make_bank(), make_source(9)
    weights = [make_weights(bank, "mlp", seed) for seed in range(3)]
    scores = torch.rand(3, 9) + 0.01
    tables = [row.unsqueeze(1).expand(9, bank.classes) for row in scores]
    teachers = [Teacher("mlp", w, table) for w, table in zip(weights, tables, strict=True)]
    got = Ensemble(bank, teachers, "mean_logits").predict(source, source.all_indices(), lambda *_: None)
    logits = []
    for w in weights:
        with torch.no_grad():
            logits.append(bank.lend("mlp", w).eval()(source.inputs(source.all_indices())))
    for j in range(9):
        mean = sum(scores[k, j] * logits[k][j] for k in range(3)) / scores[:, j].sum()
        torch.testing.assert_close(got[j], mean.log_softmax(0), rtol=1e-4, atol=1e-5)


def test_sorted_public_inputs_lose_no_class():
    """A folder of images is read class by class; each class must be distilled, and be among the negatives."""
    federation = federation_of()
    labels = torch.arange(INPUTS) // (INPUTS // 5)
    source = dataclasses.replace(federation.source, labels=labels)
    scored = federation.recipe.scores.inputs(source, federation.key)
    distilled = federation.recipe.protocol.public(scored, federation.key, 1).labels.bincount(minlength=5)
    assert distilled.sum() == INPUTS - NEGATIVES
    assert distilled.min() > 0
    assert (INPUTS // 5 - distilled).max() < NEGATIVES, "nor are they all of one class"


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"fuse": {"kind": "none"}}, "scores certainty say how much teachers count, but this method asks none"),
        ({"fuse": {"views": "augmented"}}, "clients score the public inputs as they are"),
    ],
)
def test_refusals(parts, reason):
    with pytest.raises(ConfigError, match=reason):
        validate({"data": {"name": "digits"}, "models": {"m": {"arch": "mlp"}}, "method": {"name": "fedaux", **parts}})


def test_a_client_that_was_screened_at_its_first_visit_is_remembered():
    """Nobody is asked twice, so the scores of a client that does not count today must not be lost."""
    method = tiny_method("fedaux", screen=[{"kind": "drop_worst", "chance_factor": 1.1}])
    recipe = Recipe.model_validate({key: part for key, part in method.items() if key != "name"})
    federation = make_federation(recipe=recipe, source=INPUTS, validation=30)
    after = played(federation, 4)
    assert any(record.screened for record in after.server.history)
    assert {name.split("/")[0] for name in after.server.memory["scores"] if "certainty_scores" in name} == set("0123")
