"""DS-FL: the consensus is sharpened, and the server has a model that learns it."""

from __future__ import annotations

from fedfuse.federation import Recipe
from tests.helpers import make_federation, played, tiny_method


def federation_of(**changes):
    method = tiny_method("ds-fl")
    method["protocol"] |= changes
    recipe = Recipe.model_validate({key: part for key, part in method.items() if key != "name"})
    return make_federation(recipe=recipe, source=40)


def test_the_consensus_has_less_entropy_than_the_mean():
    def entropy(**changes):
        consensus = played(federation_of(**changes), 1).server.memory["protocol"]["consensus"]
        return float(-(consensus * consensus.clamp_min(1e-12).log()).sum(dim=1).mean())

    assert entropy() < entropy(temperature=None) - 0.1


def test_the_server_learns():
    federation = federation_of()
    start, end = federation.start().server.weights["mlp"], played(federation, 2).server.weights["mlp"]
    assert not start.equals(end)
