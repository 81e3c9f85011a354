"""FedAUX's scores: the regression against scikit-learn, its privacy noise against the formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.core.weights import NOTHING
from fedfuse.parts.scores import ByCertainty, Said, certainty
from fedfuse.parts.scores.certainty import fit
from fedfuse.runtime.source import Source
from tests.helpers import AS_IT_IS, CPU, make_bank, make_client, make_examples, make_source, make_update, make_weights


@pytest.mark.parametrize(("shift", "regularisation"), [(0.5, 0.01), (0.5, 1.0), (6.0, 0.01), (6.0, 1e-4)])
def test_the_regression_is_scikit_learns(shift, regularisation):
    """Also where the classes are far apart, and the minimiser is far from where Newton's method begins."""
    random = np.random.default_rng(0)
    features = np.concatenate([random.normal(0, 1, (30, 5)), random.normal(shift, 1, (50, 5))])
    features /= np.linalg.norm(features, axis=1).max()
    signs = np.concatenate([np.ones(30), -np.ones(50)])
    sklearns = LogisticRegression(C=1 / (regularisation * 80), fit_intercept=False, tol=1e-12, max_iter=10_000)
    expected = sklearns.fit(features, signs).coef_[0]
    found = fit(torch.from_numpy(features), torch.from_numpy(signs), regularisation).numpy()
    assert found == pytest.approx(expected, rel=1e-3, abs=1e-4)


def client_of(examples, source, key=3):
    bank = make_bank()
    weights = make_weights(bank, "mlp", 1)
    task = Task(1, 0, "mlp", weights, {"extractor": weights.flat})
    return make_client(task, bank.lend("mlp", weights), examples, bank=bank, source=source, key=Key(key))


def test_inputs_like_ones_own_count_more():
    examples, source = make_examples(60), make_source(50)
    far = Source("far", source.raw * 2 + 10, AS_IT_IS, CPU)
    client = client_of(examples, far)
    learnt = ByCertainty().learn(client)
    like, unlike = (ByCertainty().say(learnt, client, s)["certainty_scores"] for s in (source, far))
    assert like.shape == (50,)
    assert like.min() > unlike.max()
    assert (unlike > 0).all()


def rows(tensor):
    return {tuple(row) for row in tensor.tolist()}


def test_negatives_are_not_asked_about(monkeypatch):
    """Whoever has the common key divides the public inputs alike: each is asked about or is a negative, never both."""
    weighting, source, looked_at = ByCertainty(negatives=0.25), make_source(20), []
    monkeypatch.setattr(certainty, "features_on", lambda s, _: (looked_at.append(s), torch.rand(len(s), 5))[1])
    weighting.learn(client_of(make_examples(7), source))
    _, negatives = looked_at
    asked = weighting.inputs(source, Key(0))
    assert (len(asked), len(negatives)) == (15, 5)
    assert rows(asked.raw) | rows(negatives.raw) == rows(source.raw)
    assert torch.equal(asked.raw, weighting.inputs(source, Key(0)).raw)
    assert not torch.equal(asked.raw, weighting.inputs(source, Key(1)).raw)
    assert weighting.spec(15, 3) == {"certainty_scores": (15,)}


def test_inputs_that_lie_class_by_class_are_divided_at_random():
    classes = torch.arange(10).repeat_interleave(43)
    source = Source("sorted", classes.unsqueeze(1).expand(-1, 4).float(), AS_IT_IS, CPU)
    for seed in range(20):
        asked = ByCertainty().inputs(source, Key(seed)).raw[:, 0].long().bincount(minlength=10)
        assert asked.sum() == 344
        assert asked.min() >= 24, "of 43, and 34.4 are expected with a deviation of 2.6"
        assert asked.max() < 43


def test_weights_are_the_shares_of_the_scores():
    scores = torch.rand(3, 7) + 1e-8
    rows = [Said(make_update(NOTHING, client=k, extras={"certainty_scores": row})) for k, row in enumerate(scores)]
    got = torch.stack(ByCertainty().weights(rows)).squeeze(2)
    torch.testing.assert_close(got, scores / scores.sum(0))


def test_privacy_noise_has_the_stated_deviation():
    examples, source = make_examples(40), make_source(50)
    plain = ByCertainty().learn(client_of(examples, source))["direction"]
    private = ByCertainty(epsilon=0.5, delta=1e-5)
    moved = [private.learn(client_of(examples, source, key))["direction"] - plain for key in range(60)]
    examples_in_all = 40 + 10
    expected = math.sqrt(2 * math.log(1.25 / 1e-5)) * 2 / (examples_in_all * 0.01) / 0.5
    assert float(torch.cat(moved).std()) == pytest.approx(expected, rel=0.15)
