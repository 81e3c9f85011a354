"""FD: mean logits per label and nothing else travel; they reach the loss."""

from __future__ import annotations

import torch

from fedfuse.engines import LocalEngine
from fedfuse.methods import METHODS
from tests.helpers import CLASSES, make_federation, make_recipe, played


def test_bytes_are_those_of_the_paper():
    """4 K^2 down; 4 (K^2 + K) up, because sums and counts travel instead of their quotients."""
    federation = make_federation(recipe=METHODS["fd"].recipe)
    history = played(federation, 3).server.history
    size = 4 * federation.bank.layout("mlp").size
    assert [r.bytes_up for r in history] == [4 * 4 * (CLASSES**2 + CLASSES)] * 3
    assert [r.bytes_down for r in history] == [4 * size, 4 * 4 * CLASSES**2, 4 * 4 * CLASSES**2]


def test_without_its_term_clients_learn_alone():
    models = {}
    for name, local in (("fd", METHODS["fd"].recipe.local), ("alone", METHODS["local-only"].recipe.local)):
        recipe = make_recipe(protocol=METHODS["fd"].recipe.protocol, start=METHODS["fd"].recipe.start, local=local)
        models[name] = played(make_federation(recipe=recipe), 2).clients
    off = METHODS["fd"].recipe.local.model_copy(update={"coefficient": 0.0})
    recipe = make_recipe(protocol=METHODS["fd"].recipe.protocol, start=METHODS["fd"].recipe.start, local=off)
    without = played(make_federation(recipe=recipe), 2).clients
    for client in range(4):
        assert torch.equal(without[client]["protocol/model"], models["alone"][client]["protocol/model"])
        assert not torch.equal(models["fd"][client]["protocol/model"], models["alone"][client]["protocol/model"])


def test_targets_are_the_others_mean_logits_of_the_round_before(monkeypatch):
    """As printed: each round's means are of that round's logits, over all examples of a label and over nothing else."""
    sent, answered = {}, {}
    plain = LocalEngine.train

    def listening(self, tasks, states):
        for update, state in plain(self, tasks, states):
            answered[update.round, update.client] = update.extras
            yield update, state
        sent.update({(task.round, task.client): task.extras for task in tasks})

    monkeypatch.setattr(LocalEngine, "train", listening)
    federation = make_federation(recipe=METHODS["fd"].recipe)
    datasets = federation.engine.clients.datasets
    played(federation, 3)
    for number in (2, 3):
        for client in range(4):
            means = []
            for other in set(range(4)) - {client}:
                examples, heard = datasets[other].label_counts(CLASSES), answered[number - 1, other]
                assert torch.equal(heard["local/logit_counts"], examples.float()), "one epoch of one round"
                means.append(heard["local/logit_sums"] / examples.unsqueeze(1))
            expected = torch.stack(means).nanmean(dim=0)
            torch.testing.assert_close(sent[number, client]["local/label_logits"], expected, equal_nan=True)
