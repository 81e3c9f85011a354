"""The fusion of predictions: at each step the target is made by all clients, or by some that are drawn for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

import pytest
import torch

from fedfuse.core.messages import within
from fedfuse.core.randomness import Key
from fedfuse.federation.predictions import combined
from fedfuse.parts.fuse import Distiller, PredictionDistillation
from fedfuse.parts.fuse.batches import steps_of
from fedfuse.parts.protocol import Predictions
from fedfuse.parts.protocol.base import PREDICTIONS
from fedfuse.parts.scores import ByExamples, ByLabels, ByReconstruction, Uniform
from tests.helpers import make_bank, make_federation, make_recipe, make_source, make_update, make_view, played

INPUTS, CLIENTS = 20, 6
DISTILLER = Distiller(steps=9, batch_size=7, keep="last")
BANK = make_bank()


def answers_of(seed):
    random = torch.Generator().manual_seed(seed)
    said = {PREDICTIONS: torch.randn(INPUTS, 3, generator=random).softmax(dim=1)}
    scores = {
        "reconstruction_errors": torch.rand(INPUTS, generator=random) + 0.1,
        "label_counts": torch.randint(1, 9, (3,), generator=random).float(),
    }
    return {**within("protocol", said), **within("scores", scores)}


UPDATES = [
    make_update(BANK.initial("mlp", Key(i)), client=i, examples=5 + 3 * i, extras=answers_of(i)) for i in range(CLIENTS)
]


def weighted(weighting, drawn, where):
    """sum_k w_k z_k by hand, for the inputs of one step."""
    rows = [UPDATES[k].extras for k in drawn]
    if weighting == "uniform":
        shares = [torch.full((len(where), 1), 1 / len(drawn))] * len(drawn)
    elif weighting == "examples":
        total = sum(UPDATES[k].examples for k in drawn)
        shares = [torch.full((len(where), 1), UPDATES[k].examples / total) for k in drawn]
    elif weighting == "labels":
        total = sum(row["scores/label_counts"] for row in rows) + 0.001
        shares = [(row["scores/label_counts"] / total).expand(len(where), 3) for row in rows]
    else:
        powers = [row["scores/reconstruction_errors"][where].double() ** -6 for row in rows]
        shares = [(power / sum(powers)).unsqueeze(1) for power in powers]
    return sum(share * row["protocol/predictions"][where] for share, row in zip(shares, rows, strict=True)).float()


KINDS = {
    "uniform": Uniform(), "examples": ByExamples(), "labels": ByLabels(), "reconstruction": ByReconstruction(),
}  # fmt: skip


def heard(weighting):
    """The updates as they would come: with the scores that this kind asks for, and no others."""
    names = {"protocol/predictions", *within("scores", KINDS[weighting].spec(INPUTS, 3))}
    return [replace(update, extras={n: t for n, t in update.extras.items() if n in names}) for update in UPDATES]


def batches(weighting, share, key=1):
    recipe, source = make_recipe(protocol=Predictions(), scores=KINDS[weighting]), make_source(INPUTS)
    combine, updates = partial(combined, recipe, None), heard(weighting)
    view = make_view(BANK, source=source, key=Key(key), predictions=combine(updates), combine=combine)
    fuse = PredictionDistillation(distiller=DISTILLER, teachers_per_step=share)
    plan = steps_of(source, 9, 7, Key(key))
    return list(zip(plan, fuse._batches(view, source, updates), strict=True))


@pytest.mark.parametrize("weighting", list(KINDS))
def test_every_step_hears_some_clients_of_its_own_and_weighs_them_anew(weighting):
    """The drawn ones are found by trying all subsets of that size, so that the key's address is not repeated here."""
    subsets = torch.combinations(torch.arange(CLIENTS), 3).tolist()
    seen = Counter()
    for (where, _), batch in batches(weighting, 0.5):
        inputs, target = batch()
        assert torch.equal(inputs, make_source(INPUTS).raw[where])
        fitting = [c for c in subsets if torch.allclose(weighted(weighting, c, where), target.exp(), atol=1e-6)]
        assert len(fitting) == 1
        seen.update(map(tuple, fitting))
    assert len(seen) > 3


@pytest.mark.parametrize("weighting", list(KINDS))
def test_with_everybody_at_every_step_it_is_the_combined_answer(weighting):
    for (where, _), batch in batches(weighting, 1.0):
        assert torch.allclose(weighted(weighting, range(CLIENTS), where), batch()[1].exp(), atol=1e-6)


def test_who_is_heard_depends_on_the_key_alone():
    one, same, other = ([batch()[1] for _, batch in batches("uniform", 0.5, key)] for key in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("inputs", [None, 12])
def test_it_works_in_a_federation_also_with_inputs_drawn_for_each_round(inputs):
    parts = {"protocol": Predictions(inputs=inputs), "scores": ByReconstruction(epochs=1)}

    def after(share):
        fuse = PredictionDistillation(distiller=DISTILLER, teachers_per_step=share)
        federation = make_federation(recipe=make_recipe(**parts, fuse=fuse), source=INPUTS)
        return played(federation, 2).server.weights["mlp"]

    assert after(0.5).equals(after(0.5))
    assert not after(0.5).equals(after(1.0))


def test_one_client_is_heard_at_least():
    (_, batch), *_ = batches("uniform", 0.01)
    assert torch.isfinite(batch()[1]).all()
