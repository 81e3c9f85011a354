"""Cronus: clients learn the consensus along with their own examples, from the second round on."""

from __future__ import annotations

import torch

from fedfuse.federation import Recipe
from tests.helpers import make_federation, played, tiny_method


def federation_of(**changes):
    method = tiny_method("cronus")
    method["protocol"] |= changes
    recipe = Recipe.model_validate({key: part for key, part in method.items() if key != "name"})
    return make_federation(recipe=recipe, source=40)


def test_both_at_every_step():
    with_it, alone = federation_of(), federation_of(distillation=None)
    one, other = played(with_it, 1), played(alone, 1)
    assert torch.equal(one.clients[0]["protocol/model"], other.clients[0]["protocol/model"])  # the warm-up
    assert not torch.equal(
        played(with_it, 1, one).clients[0]["protocol/model"], played(alone, 1, other).clients[0]["protocol/model"]
    )


def test_the_server_has_no_model():
    federation = federation_of()
    assert federation.start().server.weights["mlp"].equals(played(federation, 2).server.weights["mlp"])
    assert not federation.recipe.has_server_model
