"""Scores by what teachers say, against loops in numpy: of predictions that clients send, and of models."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from fedfuse.core.weights import NOTHING, Weights, mean
from fedfuse.engines.workers import WorkersEngine
from fedfuse.federation import Recipe
from fedfuse.federation.events import EventLog
from fedfuse.federation.predictions import combined
from fedfuse.models import Mlp
from fedfuse.parts.fuse import EnsembleDistillation, EnsembleOnly
from fedfuse.parts.protocol import Predictions
from fedfuse.parts.scores import ByConfidence, ByEntropy, ByVariance, Said
from fedfuse.parts.teachers import AverageTeacher, ClientTeachers, Question, Teacher
from tests.helpers import (
    CLASSES,
    TinyNorm,
    make_bank,
    make_federation,
    make_recipe,
    make_source,
    make_update,
    make_view,
    make_weights,
    played,
    tiny_method,
)

INPUTS, CLIENTS = 11, 4
KINDS = {
    "confidence": ByConfidence(),
    "entropy": ByEntropy(),
    "colder entropy": ByEntropy(temperature=0.2),
    "variance": ByVariance(),
}
TARGETS = ["mean_logits", "mean_probabilities"]
FLOOR = 1e-8


def worth(kind, p):
    """g of one row of probabilities, one class at a time."""
    if kind == "confidence":
        return max(p) + FLOOR
    if kind == "variance":
        return sum((c - sum(p) / len(p)) ** 2 for c in p) / len(p) + FLOOR
    entropy = -sum(c * math.log(c) for c in p if c > 0)
    return math.exp(-entropy / (0.2 if kind == "colder entropy" else 1.0)) + FLOOR


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def by_loop(kind, probabilities, outputs):
    """sum_k w_k(x_j) z_k(x_j), w_k(x_j) = g(p_k(x_j)) / sum_i g(p_i(x_j)), one input at a time."""
    total = np.zeros(outputs[0].shape)
    for j in range(len(total)):
        shares = [worth(kind, one[j].tolist()) for one in probabilities]
        for share, said in zip(shares, outputs, strict=True):
            total[j] += share / sum(shares) * said[j]
    return total


def logits_of(client):
    """Some are surer than others, and not everywhere the same ones."""
    random = torch.Generator().manual_seed(client)
    return torch.randn(INPUTS, CLASSES, generator=random) * (0.3 + 3 * torch.rand(INPUTS, 1, generator=random))


def heard(tables):
    return [make_update(NOTHING, client=k, extras={"protocol/predictions": t}) for k, t in enumerate(tables)]


@pytest.mark.parametrize("kind", KINDS)
class TestPredictions:
    @pytest.mark.parametrize("output", ["probabilities", "logits"])
    @pytest.mark.parametrize("rows", [None, [8, 2, 5]])
    def test_is_the_loop(self, kind, output, rows):
        logits = [logits_of(client) for client in range(CLIENTS)]
        sent = logits if output == "logits" else [one.softmax(dim=1) for one in logits]
        recipe = make_recipe(protocol=Predictions(output=output), scores=KINDS[kind])
        where = None if rows is None else torch.tensor(rows)
        got = combined(recipe, None, heard(sent), where)
        outputs = [one.double().numpy() for one in sent]
        probabilities = [softmax(one) for one in outputs] if output == "logits" else outputs
        expected = by_loop(kind, probabilities, outputs)
        np.testing.assert_allclose(got.outputs.numpy(), expected if rows is None else expected[rows], rtol=1e-5)
        assert got.are_logits == (output == "logits")
        assert not np.allclose(expected, np.mean(outputs, axis=0), atol=1e-3), "or this shows nothing"

    def test_shares_are_of_one(self, kind):
        weights = KINDS[kind].weights([Said(make_update(NOTHING), logits_of(k), are_logits=True) for k in range(4)])
        assert [tuple(weight.shape) for weight in weights] == [(INPUTS, 1)] * 4
        np.testing.assert_allclose(sum(weights).numpy(), 1, rtol=1e-6)

    def test_teachers_that_know_nothing_count_the_same(self, kind):
        """Uniform probabilities: without any variance too, and never a NaN."""
        same = torch.full((INPUTS, CLASSES), 1 / CLASSES)
        weights = KINDS[kind].weights([Said(make_update(NOTHING), same) for _ in range(CLIENTS)])
        assert all(bool((weight == 1 / CLIENTS).all()) for weight in weights)
        got = combined(make_recipe(protocol=Predictions(), scores=KINDS[kind]), None, heard([same] * CLIENTS))
        torch.testing.assert_close(got.outputs, same)

    def test_teachers_that_are_equally_sure_of_different_things_make_a_plain_mean(self, kind):
        tables = [logits_of(0).softmax(dim=1).roll(shift, dims=1) for shift in range(CLASSES)]
        got = combined(make_recipe(protocol=Predictions(), scores=KINDS[kind]), None, heard(tables))
        torch.testing.assert_close(got.outputs, torch.stack(tables).mean(0))

    def test_who_is_surer_counts_more(self, kind):
        sure, unsure = torch.tensor([[0.9, 0.05, 0.05]]), torch.tensor([[0.3, 0.4, 0.3]])
        first, second = KINDS[kind].weights([Said(make_update(NOTHING), table) for table in (sure, unsure)])
        assert float(first) > 1.5 * float(second)

    def test_who_is_certain_is_no_accident(self, kind):
        """One class alone has no entropy to take the logarithm of."""
        certain, unsure = torch.tensor([[1.0, 0.0, 0.0]]), torch.full((1, 3), 1 / 3)
        first, second = KINDS[kind].weights([Said(make_update(NOTHING), table) for table in (certain, unsure)])
        expected = worth(kind, [1.0, 0.0, 0.0]) / (worth(kind, [1.0, 0.0, 0.0]) + worth(kind, [1 / 3] * 3))
        assert float(first) == pytest.approx(expected, rel=1e-5)
        assert float(first + second) == pytest.approx(1)

    @pytest.mark.parametrize("row", [[-1.0, 1.0, 1.0], [-1.0, -1.0, -1.0], [1e30, 0.0, 0.0]])
    def test_a_table_that_is_no_probabilities_leaves_weights_that_are_weights(self, kind, row):
        """It passes inspection, which asks for finite numbers only; it must not make the others' answers NaN."""
        honest = logits_of(0).softmax(dim=1)
        said = [honest, torch.tensor(row).expand(INPUTS, CLASSES)]
        weights = torch.stack(KINDS[kind].weights([Said(make_update(NOTHING), table) for table in said]))
        assert bool(weights.isfinite().all())
        assert bool((weights >= 0).all())


def models():
    bank = make_bank(norm=TinyNorm(), mlp=Mlp(hidden=(5,)))
    names = ["norm", "mlp", "norm", "mlp"]
    updates = [make_update(louder(make_weights(bank, p, i)), client=i, prototype=p) for i, p in enumerate(names)]
    merged = {p: mean([u.weights for u in updates if u.prototype == p], [1.0, 1.0]) for p in ("norm", "mlp")}
    return bank, updates, merged


def louder(weights):
    """A model whose probabilities are not all near 1 / K."""
    return weights.with_parameters(3 * weights.parameters)


def ensemble_of(scores, target, bank, updates, merged, fuse=EnsembleDistillation, **more):
    return fuse(target=target, **more)._ensemble(make_view(bank, scores=scores), merged, updates)


def both(ensemble, source):
    every = source.all_indices()
    return ensemble.log_probabilities(source.inputs(every)), ensemble.predict(source, every, lambda *_: None)


def finished(average, target):
    return np.log(softmax(average)) if target == "mean_logits" else np.log(average)


def asked(bank, teachers, source):
    with torch.no_grad():
        return [bank.lend(p, w).eval()(source.raw).double().numpy() for p, w in teachers]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
class TestModels:
    @pytest.mark.parametrize("fuse", [EnsembleDistillation, EnsembleOnly])
    def test_is_the_loop(self, kind, target, fuse):
        bank, updates, merged = models()
        source = make_source(INPUTS)
        logits = asked(bank, [(u.prototype, u.weights) for u in updates], source)
        probabilities = [softmax(one) for one in logits]
        outputs = logits if target == "mean_logits" else probabilities
        expected = finished(by_loop(kind, probabilities, outputs), target)
        for got in both(ensemble_of(KINDS[kind], target, bank, updates, merged, fuse), source):
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-4, atol=1e-5)
        plain = finished(np.mean(outputs, axis=0), target)
        assert not np.allclose(expected, plain, atol=1e-2), "or this shows nothing"

    def test_averages_among_the_teachers_are_judged_by_what_they_say_themselves(self, kind, target):
        bank, updates, merged = models()
        source, teachers = make_source(INPUTS), (ClientTeachers(), AverageTeacher())
        logits = asked(bank, [*((u.prototype, u.weights) for u in updates), *merged.items()], source)
        probabilities = [softmax(one) for one in logits]
        outputs = logits if target == "mean_logits" else probabilities
        expected = finished(by_loop(kind, probabilities, outputs), target)
        for got in both(ensemble_of(KINDS[kind], target, bank, updates, merged, teachers=teachers), source):
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-4, atol=1e-5)

    def test_some_inputs_are_asked_about(self, kind, target):
        bank, updates, merged = models()
        source, where = make_source(INPUTS), torch.tensor([1, 4, 9])
        ensemble = ensemble_of(KINDS[kind], target, bank, updates, merged)
        some = ensemble.predict(source, where, lambda *_: None)
        assert some.shape == (INPUTS, CLASSES)
        torch.testing.assert_close(some[where], both(ensemble, source)[1][where])

    def test_models_that_know_nothing_make_a_plain_mean(self, kind, target):
        """Equal logits, on whatever level: no variance, the largest entropy."""
        bank, updates, merged = models()
        flat = []
        for place, update in enumerate(updates):
            tensors = {n: torch.zeros_like(t) for n, t in update.weights.items()}
            tensors["classifier.bias"] += place
            silent = Weights(torch.cat([t.reshape(-1) for t in tensors.values()]), update.weights.layout)
            flat.append(replace(update, weights=silent))
        source = make_source(INPUTS)
        for got in both(ensemble_of(KINDS[kind], target, bank, flat, merged), source):
            np.testing.assert_allclose(got.numpy(), math.log(1 / CLASSES), rtol=1e-5)

    def test_a_question_travels(self, kind, target):
        """Whoever is asked, in this process or in another, answers with the same bits."""
        bank, updates, _ = models()
        source = make_source(INPUTS)
        question = Question(bank, [partial(source.inputs, source.all_indices())], target, KINDS[kind].weigh)
        there = pickle.loads(pickle.dumps(question))
        for update in updates:
            teacher = Teacher(update.prototype, update.weights)
            table = question(teacher)
            assert table.shape == (INPUTS, CLASSES + 1)
            assert torch.equal(there(teacher), table)


def recipe(kind, target):
    parts = {key: part for key, part in tiny_method("feddf").items() if key != "name"}
    fuse = {**parts["fuse"], "target": target}
    return Recipe.model_validate({**parts, "fuse": fuse, "scores": KINDS[kind].model_dump()})


@pytest.mark.parametrize("target", TARGETS)
def test_workers_give_the_same_bits(target):
    bank = make_bank(norm=TinyNorm(), mlp=Mlp(hidden=(5,)))
    here = make_federation(bank=bank, recipe=recipe("entropy", target), source=20, validation=10)
    engine = WorkersEngine(here.engine.clients, 2, timeout=None, log=EventLog())
    try:
        there = played(replace(here, engine=engine), 2).server
    finally:
        engine.close()
    ours = played(here, 2).server
    plain = make_federation(bank=bank, recipe=recipe("entropy", target).model_copy(
        update={"scores": Recipe().scores}), source=20, validation=10)  # fmt: skip
    for prototype, weights in ours.weights.items():
        assert weights.equals(there.weights[prototype])
        assert not weights.equals(played(plain, 2).server.weights[prototype]), "or the scores did nothing"


@pytest.mark.parametrize("kind", KINDS)
def test_the_ensemble_that_is_measured_is_weighed_too(kind):
    federation = make_federation(recipe=recipe(kind, "mean_logits"), source=20, validation=10)
    updates, train = [], federation.engine.train

    def listening(tasks, states):
        for update, state in train(tasks, states):
            updates.append(update)
            yield update, state

    federation.engine.train = listening
    (record,) = played(federation, 1).server.history
    test = federation.test.examples
    source = replace(make_source(1), raw=test.inputs)
    logits = asked(federation.bank, [(u.prototype, u.weights) for u in updates], source)
    total = by_loop(kind, [softmax(one) for one in logits], logits)
    right = float((total.argmax(axis=1) == test.labels.numpy()).mean())
    assert record.ensemble_accuracy == pytest.approx(right)
