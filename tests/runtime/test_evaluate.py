"""Scores are those of a hand-written loop, and looking at a model never changes it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedfuse.core.hashes import order_of
from fedfuse.core.weights import Weights
from fedfuse.models.modes import evaluation_mode
from tests.helpers import TinyNorm, make_bank, make_evaluator, make_examples, make_weights


def full_state(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same_state(model, before):
    return all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@settings(max_examples=20)
@given(count=st.integers(1, 40), batch=st.integers(1, 50), seed=st.integers(0, 5))
def test_score_is_the_hand_written_one(count, batch, seed):
    bank, examples = make_bank(norm=TinyNorm()), make_examples(count, seed)
    model = bank.lend("norm", make_weights(bank, "norm", seed)).eval()
    correct, loss = 0, 0.0
    for x, y in zip(examples.inputs, examples.labels.tolist(), strict=True):
        logits = model(x[None])[0].tolist()
        correct += max(range(3), key=lambda c: logits[c]) == y
        loss += math.log(sum(math.exp(v) for v in logits)) - logits[y]
    score = make_evaluator(examples, batch).score(model)
    assert score.accuracy == correct / count
    assert score.loss == pytest.approx(loss / count, rel=1e-5)


@torch.no_grad()
def test_batch_statistics_normalise_by_each_batch():
    bank, examples = make_bank(norm=TinyNorm()), make_examples(12)
    model = bank.lend("norm", make_weights(bank, "norm", 1))
    linear, norm = model.layers[1], model.layers[2]
    loss = 0.0
    mixed = order_of(examples.inputs)
    for at in (mixed[:6], mixed[6:]):  # 12 examples in batches of at most 8: two equal ones
        h = linear(examples.inputs[at])
        h = (h - h.mean(0)) / (h.var(0, unbiased=False) + norm.eps).sqrt() * norm.weight + norm.bias
        logits = model.classifier(h.relu())
        loss += float(torch.nn.functional.cross_entropy(logits, examples.labels[at], reduction="sum"))
    score = by_batch(examples, 8).score(model)
    assert score.loss == pytest.approx(loss / 12, rel=1e-5)


@pytest.mark.parametrize("batch_statistics", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_looking_changes_nothing(batch_statistics, training):
    bank = make_bank(norm=TinyNorm(dropout=0.5))
    model = bank.lend("norm", make_weights(bank, "norm", 1)).train(training)
    before, random = full_state(model), torch.random.get_rng_state()
    evaluator = replace(make_evaluator(make_examples(20)), batch_statistics=batch_statistics)
    assert evaluator.score(model) == evaluator.score(model)
    assert same_state(model, before)
    assert all(module.training == training for module in model.modules())
    assert torch.equal(torch.random.get_rng_state(), random)


def test_the_mode_comes_back_after_an_error():
    bank = make_bank(norm=TinyNorm())
    model = bank.lend("norm", make_weights(bank, "norm", 1)).train()
    before = full_state(model)

    def interrupted():
        with evaluation_mode(model, batch_statistics=True):
            model(make_examples(8).inputs)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        interrupted()
    assert model.training
    assert same_state(model, before)


def test_inside_the_block_only_norm_layers_train():
    model = make_bank(norm=TinyNorm(dropout=0.5)).lend("norm", make_weights(make_bank(norm=TinyNorm()), "norm", 1))
    with evaluation_mode(model.train(), batch_statistics=True):
        modes = {type(module).__name__: module.training for module in model.modules()}
    assert modes.pop("BatchNorm1d")
    assert not any(modes.values())


def test_a_function_is_scored_like_a_model():
    bank, examples = make_bank(norm=TinyNorm()), make_examples(20)
    model = bank.lend("norm", make_weights(bank, "norm", 1)).eval()
    evaluator = make_evaluator(examples)
    by_log_probabilities = evaluator.score_logits(lambda x: model(x).log_softmax(dim=1))
    assert by_log_probabilities.accuracy == evaluator.score(model).accuracy
    assert by_log_probabilities.loss == pytest.approx(evaluator.score(model).loss, rel=1e-6)


def test_nothing_to_score_on_is_an_error():
    with pytest.raises(ValueError, match="nothing to score on"):
        make_evaluator(make_examples(0)).score_logits(lambda x: x)


def test_scoring_leaves_the_weights():
    bank = make_bank(norm=TinyNorm())
    weights = make_weights(bank, "norm", 1)
    model = bank.lend("norm", weights)
    by_batch(make_examples(20)).score(model)
    assert Weights.of(model).equals(weights)


def test_batch_statistics_of_a_trailing_single_example():
    bank = make_bank(norm=TinyNorm())
    model = bank.lend("norm", make_weights(bank, "norm", 1))
    by_batch(make_examples(9), batch_size=4).score(model)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_batches_have_two_examples_at_least(size):
    bank = make_bank(norm=TinyNorm())
    by_batch(make_examples(size), batch_size=1).score(bank.lend("norm", make_weights(bank, "norm", 1)))


def test_with_batch_statistics_the_order_of_the_examples_does_not_matter():
    """Neither sorted by class, nor backwards, nor shuffled."""
    bank, examples = make_bank(norm=TinyNorm()), make_examples(200)
    model = bank.lend("norm", make_weights(bank, "norm", 1))
    score = by_batch(examples, 20).score(model)
    shuffled = torch.randperm(200, generator=torch.Generator().manual_seed(3))
    for order in (examples.labels.argsort(stable=True), torch.arange(199, -1, -1), shuffled):
        assert by_batch(examples.select(order), 20).score(model) == score


def by_batch(examples, batch_size=7):
    return replace(make_evaluator(examples, batch_size), batch_statistics=True)


@pytest.mark.parametrize("batch_statistics", [False, True])
def test_what_is_measured_besides_sees_all_logits_in_the_order_of_the_examples(batch_statistics):
    bank, examples = make_bank(norm=TinyNorm()), make_examples(17)
    model, seen = bank.lend("norm", make_weights(bank, "norm", 1)), []
    plain = replace(make_evaluator(examples, 5), batch_statistics=batch_statistics)
    measuring = replace(plain, measure=lambda logits, labels: seen.append((logits, labels)) or {"size": len(labels)})
    score = measuring.score(model)
    assert score == replace(plain.score(model), metrics={"size": 17})
    ((logits, labels),) = seen
    assert torch.equal(labels, examples.labels)
    assert score.accuracy == float((logits.argmax(dim=1) == labels).double().mean())
    if not batch_statistics:
        with torch.no_grad():
            assert torch.allclose(logits, model.eval()(examples.inputs), atol=1e-6)
    assert measuring.score_table(logits).metrics == {"size": 17}
