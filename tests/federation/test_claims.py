"""What clients say of themselves counts within bounds, and honest federations never notice."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedfuse.core.weights import NOTHING
from fedfuse.federation.claims import Claims, examples_within_bounds
from fedfuse.parts.local import Generative, LabelLogits
from fedfuse.parts.protocol import Predictions
from fedfuse.parts.protocol.layers import LayerByLayer
from fedfuse.parts.scores import ByCertainty, ByLabels, ByReconstruction, Said
from tests.helpers import make_recipe, make_update

SIZES = [101, 99, 100, 120, 80, 95, 104, 110, 90, 100]


def updates(extras=None, sizes=SIZES):
    extras = extras or [{} for _ in sizes]
    return [make_update(NOTHING, client=k, examples=n, extras=own) for k, (n, own) in enumerate(zip(sizes, extras))]  # noqa: B905


def bounded(came, trust="bounded", **parts):
    recipe = make_recipe(**{"protocol": Predictions(), "scores": ByLabels(), **parts})
    claims = Claims(recipe, trust)
    return claims.within_bounds(came), claims


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=15))
def test_examples_only_ever_count_for_less(sizes):
    counted = examples_within_bounds(sizes)
    assert all(1 <= after <= before for after, before in zip(counted, sizes, strict=True))
    assert max(counted) == max(sizes) or len(sizes) > 1


def test_a_liar_of_ten_counts_as_two_of_them():
    came = updates(sizes=[*SIZES[:9], 10**9])
    counted, claims = bounded(came)
    assert counted[9].examples < 2.2 * 104
    assert claims.reasons == {9: f"claims 1,000,000,000 examples, counts as {counted[9].examples}"}
    assert [update.examples for update in counted[:9]] == SIZES[:9]


def test_what_is_usual_is_the_very_object():
    came = updates()
    counted, claims = bounded(came)
    assert all(after is before for after, before in zip(counted, came, strict=True))
    assert not claims.reasons


def test_taken_is_as_it_came():
    came = updates(sizes=[1, 1, 1, 1, 1, 10**12])
    counted, claims = bounded(came, "taken")
    assert all(after is before for after, before in zip(counted, came, strict=True))
    assert claims.examples([1, 10**12]) == [1, 10**12]


@pytest.mark.parametrize(("slot", "part"), [("scores", None), ("local", Generative()), ("protocol", LayerByLayer())])
def test_label_counts_are_no_more_than_examples(slot, part):
    name = f"{slot}/label_counts"
    honest = [torch.bincount(torch.arange(n) % 4, minlength=4).float() for n in SIZES]
    lie = [*honest[:9], torch.full((4,), 1e9)]
    parts = {} if part is None else {slot: part}
    counted, claims = bounded(updates([{name: own} for own in lie]), **parts)
    assert float(counted[9].extras[name].sum()) == pytest.approx(SIZES[9])
    assert list(claims.reasons) == [9]
    fair, _ = bounded(updates([{name: own} for own in honest]), **parts)
    assert all(torch.equal(update.extras[name], own) for update, own in zip(fair, honest, strict=True))


@pytest.mark.parametrize(("slot", "part"), [("scores", None), ("local", Generative()), ("protocol", LayerByLayer())])
def test_who_has_nothing_but_one_class_does_not_speak_for_it_alone(slot, part):
    """A model that calls everything by one name would else be half of what everybody knows of that class."""
    name, parts = f"{slot}/label_counts", {} if part is None else {slot: part}
    honest = [torch.bincount(torch.arange(n) % 4, minlength=4).float() for n in SIZES[:9]]
    lie = torch.tensor([float(SIZES[9]), 0, 0, 0])
    counted, claims = bounded(updates([{name: own} for own in [*honest, lie]]), **parts)
    assert list(claims.reasons) == [9]
    others = sum(float(own[0]) for own in honest)
    assert float(counted[9].extras[name][0]) < 0.25 * others, "two of them, of nine"
    assert all(torch.equal(update.extras[name], own) for update, own in zip(counted, honest, strict=False))


def test_who_has_much_of_a_class_keeps_it_where_the_others_differ():
    honest = [torch.tensor([1.0 + 3**k, 5, 5, 5]) for k in range(6)]
    much = torch.tensor([300.0, 5, 5, 5])
    counted, claims = bounded(updates([{"scores/label_counts": own} for own in [*honest, much]], [1000] * 7))
    assert torch.equal(counted[6].extras["scores/label_counts"], much)
    assert not claims.reasons


def test_who_has_one_class_alone_keeps_it():
    """Nine clients have none of class 3: that is skew, and no lie."""
    honest = [torch.tensor([n / 2, n / 2, 0, 0]) for n in SIZES[:9]]
    special = torch.tensor([0, 0, 0, float(SIZES[9])])
    counted, claims = bounded(updates([{"scores/label_counts": own} for own in [*honest, special]]))
    assert torch.equal(counted[9].extras["scores/label_counts"], special)
    assert not claims.reasons


def of_scores(part, name, tables):
    said = part.within_bounds([{name: table} for table in tables], [10] * len(tables))
    return [one[name] for one in said]


def weight_of_last(part, name, tables):
    said = [Said(make_update(NOTHING, client=k, extras={name: table})) for k, table in enumerate(tables)]
    return float(part.weights(said)[-1].mean())


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("exponent", [6.0, 60.0])
def test_who_claims_to_know_all_inputs_does_not_decide_them(share, exponent):
    """On all public inputs, or on half of them: FedED's w2 with errors of zero, FedAUX with a certainty of one."""
    random = torch.Generator().manual_seed(2)
    inputs = 40
    errors = [torch.exp(torch.randn(inputs, generator=random) / exponent) for _ in range(9)]
    liar = torch.where(torch.arange(inputs) < share * inputs, 0.0, 1.0)
    part = ByReconstruction(exponent=exponent)
    name = "reconstruction_errors"
    taken, kept = [*errors, liar], of_scores(part, name, [*errors, liar])
    assert weight_of_last(part, name, taken) > 0.9 * share
    assert weight_of_last(part, name, kept) < 0.5
    assert all(torch.equal(one, other) for one, other in zip(kept[:9], errors, strict=True))


def test_who_claims_certainty_everywhere_counts_like_a_specialist():
    classes = torch.arange(50) % 10
    special = [torch.where(classes == k, 0.9, 0.04) for k in range(9)]
    liar = torch.ones(50)
    part, name = ByCertainty(), "certainty_scores"
    kept = of_scores(part, name, [*special, liar])
    assert weight_of_last(part, name, [*special, liar]) > 0.45
    assert weight_of_last(part, name, kept) < 0.3
    honest = of_scores(part, name, [*special, torch.where(classes == 9, 0.9, 0.04)])
    assert all(torch.equal(one, other) for one, other in zip(honest[:9], special, strict=True))


def test_nobody_shouts_in_logits():
    random = torch.Generator().manual_seed(4)
    logits = [torch.randn(12, 5, generator=random) for _ in range(9)]
    said = [{"predictions": own} for own in [*logits, 1e9 * torch.ones(12, 5)]]
    loud = Predictions(output="logits").within_bounds(said, [1] * 10)
    assert float(loud[9]["predictions"].norm()) < 3 * np.median([float(own.norm()) for own in logits])
    assert all(one is other for one, other in zip(loud[:9], said[:9], strict=True))
    assert Predictions().within_bounds(said, [1] * 10) == said, "probabilities have a range already"


def test_nobody_shouts_in_logits_by_label():
    part = LabelLogits()
    random = torch.Generator().manual_seed(5)
    said = [
        {"logit_sums": 30 * torch.randn(4, 4, generator=random), "logit_counts": torch.full((4,), 31.0)}
        for _ in range(10)
    ]
    loud = [*said[:9], {**said[9], "logit_sums": 1e12 * torch.ones(4, 4)}]
    kept = part.within_bounds(loud, [1] * 10)
    sizes = [float(part.class_means(own).norm()) for own in kept]
    assert sizes[9] < 3 * np.median(sizes)
    assert all(one is other for one, other in zip(kept[:9], loud[:9], strict=True))


def test_parts_that_nobody_told_anything_are_not_asked():
    counted, _ = bounded(updates(), scores=ByReconstruction())
    assert len(counted) == len(SIZES)
