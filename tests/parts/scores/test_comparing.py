"""Scores that compare teachers: the median and the trimmed mean of what they say, and models heard together."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import trim_mean

from fedfuse.core.weights import NOTHING
from fedfuse.parts.fuse import EnsembleDistillation
from fedfuse.parts.protocol import Predictions
from fedfuse.parts.scores import ByAgreement, ByMedian, ByTrimmedMean, Said
from fedfuse.parts.teachers import Ensemble, Teacher
from tests.helpers import TinyNorm, make_bank, make_source, make_update, make_view, make_weights

BANK = make_bank(mlp=TinyNorm(), other=TinyNorm(width=4))


def tables(number, seed=0, far=()):
    random = torch.Generator().manual_seed(seed)
    honest = torch.randn(number, 6, 4, generator=random)
    return [*honest, *(factor * torch.randn(6, 4, generator=random) for factor in far)]


def combined(part, outputs):
    said = [Said(make_update(NOTHING, client=k), table, are_logits=True) for k, table in enumerate(outputs)]
    return Predictions(output="logits").combine(outputs, part.weights(said)).outputs.numpy()


@given(st.integers(1, 9), st.integers(0, 100))
@settings(max_examples=20)
def test_the_median_is_numpys(number, seed):
    outputs = tables(number, seed)
    np.testing.assert_allclose(combined(ByMedian(), outputs), np.median(np.stack(outputs), axis=0), atol=1e-6)


@given(st.integers(1, 9), st.sampled_from([0.1, 0.25, 0.4]))
@settings(max_examples=20)
def test_the_trimmed_mean_is_scipys(number, share):
    outputs = tables(number, number)
    expected = trim_mean(np.stack(outputs), share, axis=0)
    np.testing.assert_allclose(combined(ByTrimmedMean(hostile=share), outputs), expected, atol=1e-6)


@pytest.mark.parametrize("part", [ByMedian(), ByTrimmedMean(hostile=3)])
def test_every_number_lies_between_two_honest_ones(part):
    outputs = tables(5, far=(1e9, -1e9, 1e9))
    honest, found = np.stack(outputs[:5]), combined(part, outputs)
    assert (found >= honest.min(axis=0) - 1e-4).all()
    assert (found <= honest.max(axis=0) + 1e-4).all()


@pytest.mark.parametrize("target", ["mean_logits", "mean_probabilities"])
@pytest.mark.parametrize("part", [ByMedian(), ByTrimmedMean(hostile=0.3), ByAgreement(epsilon=0.3)])
def test_models_are_heard_together(part, target):
    """An ensemble of models, of two architectures, against the same numbers put together by hand."""
    names = ["mlp", "other", "mlp", "mlp"]
    teachers = [Teacher(name, make_weights(BANK, name, seed)) for seed, name in enumerate(names)]
    inputs = make_source(9).inputs(torch.arange(9))
    found = Ensemble(BANK, teachers, target, together=part.together).log_probabilities(inputs)
    logits = [BANK.lend(t.prototype, t.weights).eval()(inputs).detach() for t in teachers]
    said = torch.stack([one if target == "mean_logits" else one.softmax(dim=1) for one in logits]).double()
    average = (part.together(said) * said).sum(dim=0)
    expected = average.log_softmax(dim=1) if target == "mean_logits" else average.log()
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("part", [ByMedian(), ByTrimmedMean(hostile=0.3), ByAgreement(epsilon=0.3)])
def test_a_loud_teacher_does_not_decide(part):
    updates = [make_update(make_weights(BANK, "mlp", 1), client=k) for k in range(4)]
    loud = make_update(1e6 * make_weights(BANK, "mlp", 1).with_parameters(-make_weights(BANK, "mlp", 5).parameters), 9)
    view = make_view(BANK, {"mlp": make_weights(BANK, "mlp", 0)}, source=make_source(12), scores=part)
    fuse = EnsembleDistillation()
    inputs = make_source(12).inputs(torch.arange(12))
    with_it = fuse.ensemble(view, {}, [*updates, loud])(inputs)
    without = fuse.ensemble(view, {}, updates)(inputs)
    torch.testing.assert_close(with_it, without, rtol=1e-4, atol=1e-4)


def test_of_one_teacher_it_is_what_that_one_says():
    for part in (ByMedian(), ByTrimmedMean(), ByAgreement()):
        outputs = tables(1)
        np.testing.assert_allclose(combined(part, outputs), outputs[0].numpy(), atol=1e-6)
