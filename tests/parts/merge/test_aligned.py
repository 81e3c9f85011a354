"""Averaging after alignment: orders of units are undone, statistics move with their channels, laws are kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights, mean
from fedfuse.federation.recipe import Recipe
from fedfuse.models import Mlp, Own
from fedfuse.parts.base import CheckContext
from fedfuse.parts.merge import Aligned, Mean
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.optimizers import Sgd
from fedfuse.testing import check_part
from tests.helpers import (
    CPU,
    TinyNorm,
    make_bank,
    make_federation,
    make_recipe,
    make_update,
    make_view,
    make_weights,
    played,
)

BANK = make_bank(norm=TinyNorm(width=8))
GLOBAL = make_weights(BANK, "norm", 1)
VECTORS = ["layers.1.weight", "layers.1.bias", "layers.2.weight", "layers.2.bias"]
VECTORS += ["layers.2.running_mean", "layers.2.running_var"]


def near(seed):
    """A client that has learnt a little."""
    noise = torch.randn(GLOBAL.flat.shape, generator=Key(seed).torch())
    return GLOBAL.with_parameters(GLOBAL.parameters + 0.02 * noise[: len(GLOBAL.parameters)])


def mixed(weights, seed):
    """Its hidden units in another order, by hand."""
    order = torch.randperm(8, generator=Key(seed).torch())
    tensors = {name: tensor[order] if name in VECTORS else tensor for name, tensor in weights.items()}
    tensors["classifier.weight"] = tensors["classifier.weight"][:, order]
    return Weights(torch.cat([tensors[name].reshape(-1) for name in weights]), weights.layout)


def updates(*weights):
    return [make_update(w, client=i, examples=10 * (i + 1), prototype="norm") for i, w in enumerate(weights)]


def merged(part, *weights):
    return part.merge(make_view(BANK, {"norm": GLOBAL}), "norm", updates(*weights))


@pytest.mark.parametrize(("weighting", "coefficients"), [("examples", (10, 20, 30)), ("uniform", (1, 1, 1))])
def test_orders_are_undone_before_the_mean(weighting, coefficients):
    clients = [near(seed) for seed in (1, 2, 3)]
    result = merged(Aligned(weighting=weighting), *(mixed(client, i) for i, client in enumerate(clients)))
    assert result.weights.equals(mean(clients, coefficients))
    assert result.last.equals(clients[-1])


def test_clients_that_kept_the_order_have_the_plain_mean():
    clients = [near(seed) for seed in (4, 5)]
    assert merged(Aligned(), *clients).weights.equals(merged(Mean(), *clients).weights)


def test_one_client_alone_is_itself_in_the_global_order():
    assert merged(Aligned(), mixed(near(6), 6)).weights.equals(near(6))


def test_the_order_of_clients_does_not_matter_up_to_rounding():
    clients = [mixed(near(seed), seed) for seed in (7, 8, 9)]
    one = merged(Aligned(weighting="uniform"), *clients).weights.flat
    torch.testing.assert_close(merged(Aligned(weighting="uniform"), *clients[::-1]).weights.flat, one)


def mix_up(answers):
    return [(replace(update, weights=mixed(update.weights, update.client)), state) for update, state in answers]


@pytest.mark.parametrize("batch_norm", ["average", "last"])
def test_a_round_of_clients_that_are_mixed_up_is_that_of_clients_that_are_not(batch_norm):
    results = []
    for bend in (mix_up, list):
        bank, recipe = make_bank(norm=TinyNorm(width=8)), make_recipe(merge=Aligned())
        federation = make_federation(bank, recipe, bend=bend, batch_norm=batch_norm)
        results.append(played(federation, rounds=1).server.weights["norm"])
    assert results[0].equals(results[1])


def sorting(classes: int) -> nn.Module:
    class Sorting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.outer = nn.Linear(4, 6), nn.Linear(6, classes)

        def forward(self, x):
            return self.outer(self.inner(x).sort(1).values)

    return Sorting()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Mlp(hidden=()), "model 'one' \\(mlp\\) into another order: it has no hidden units"),
        ({"arch": "own", "callable": f"{__name__}:sorting"}, "'network' does with them what is not known \\(sort\\)"),
    ],
)
def test_refused_before_round_1(model, words):
    bank = ModelBank({"one": model if isinstance(model, Mlp) else Own(**model)}, (4,), 3, CPU)
    with pytest.raises(ConfigError, match=words):
        Aligned().check(CheckContext(bank, Sgd(), False))


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"local": {"kind": "control_variates"}}, "local control_variates remembers"),
        ({"upload": [{"kind": "partial", "names": "layers"}]}, "upload partial remembers"),
        ({"upload": [{"kind": "top_k"}]}, "upload top_k remembers"),
    ],
)
def test_parts_that_remember_units_by_their_places_are_refused(part, words):
    with pytest.raises(ValueError, match=words):
        Recipe.model_validate({"merge": {"kind": "aligned"}, **part})


def test_keeps_the_laws():
    check_part(Aligned(), workers=False, models={"one": {"arch": "mlp", "hidden": [6]}})
