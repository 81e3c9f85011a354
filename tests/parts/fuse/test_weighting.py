"""How much each teacher counts: the laws of the weights, and the ensemble against a hand-written loop."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.core.weights import mean
from fedfuse.experiment.run import Experiment
from fedfuse.models import Mlp
from fedfuse.parts.fuse import Ensemble, EnsembleDistillation, EnsembleOnly, Teacher
from fedfuse.parts.fuse.members import (
    AverageTeacher,
    ClientTeachers,
    DirichletTeachers,
    GaussianTeachers,
    RoundModels,
    SwagTeachers,
)
from fedfuse.parts.fuse.weighting import client_weights
from tests.helpers import (
    TinyNorm,
    make_bank,
    make_evaluator,
    make_examples,
    make_source,
    make_update,
    make_view,
    make_weights,
    tiny_config,
    tiny_method,
)

TARGETS = ["mean_logits", "mean_probabilities"]
SIZES = [5, 20, 40, 11]


@cache
def mixed():
    bank = make_bank(norm=TinyNorm(), mlp=Mlp(hidden=(5,)))
    names = ["norm", "norm", "mlp", "mlp"]
    updates = [
        make_update(make_weights(bank, p, i), client=3 + i, prototype=p, examples=SIZES[i]) for i, p in enumerate(names)
    ]
    merged = {p: mean([u.weights for u in updates if u.prototype == p], [1.0, 1.0]) for p in ("norm", "mlp")}
    return bank, updates, merged


def answers(bank, updates, inputs, target):
    logits = [bank.lend(u.prototype, u.weights).eval()(inputs).detach() for u in updates]
    return logits if target == "mean_logits" else [one.softmax(1) for one in logits]


def finish(average, target):
    return average.log_softmax(1) if target == "mean_logits" else average.clamp_min(1e-30).log()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("fuse", [EnsembleDistillation, EnsembleOnly])
def test_uniform_is_the_plain_mean_bit_for_bit(fuse, target):
    """Against the formula from before teachers had weights: total / number."""
    bank, updates, merged = mixed()
    source = make_source(40)
    first, *others = answers(bank, updates, source.raw, target)
    for share in others:
        first = first + share
    expected = finish(first / len(updates), target)
    ensemble = fuse(target=target)._ensemble(make_view(bank), merged, updates)
    assert torch.equal(ensemble.log_probabilities(source.raw), expected)
    assert torch.equal(ensemble.predict(source, source.all_indices(), lambda *_: None), expected)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("weighting", ["examples", "validation"])
def test_weighted_is_the_hand_written_loop(weighting, target):
    bank, updates, merged = mixed()
    validation = make_evaluator(make_examples(30))
    source = make_source(17)
    weights = SIZES
    if weighting == "validation":
        weights = [validation.score(bank.lend(u.prototype, u.weights)).accuracy for u in updates]
    assert len(set(weights)) > 1, "or the test would prove nothing"
    average = torch.zeros(17, 3, dtype=torch.double)
    for weight, answer in zip(weights, answers(bank, updates, source.raw, target), strict=True):
        average += weight / sum(weights) * answer.double()
    fuse = EnsembleDistillation(target=target, weighting=weighting)
    ensemble = fuse._ensemble(make_view(bank, validation=validation), merged, updates)
    for result in (
        ensemble.log_probabilities(source.raw),
        ensemble.predict(source, source.all_indices(), lambda *_: None),
    ):
        torch.testing.assert_close(result.double(), finish(average, target), rtol=1e-4, atol=1e-5)


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=12))
def test_shares_sum_to_one_whatever_the_scale(weights):
    bank, updates, _ = mixed()
    ensemble = Ensemble(bank, [Teacher("mlp", updates[2].weights, w) for w in weights], "mean_logits")
    shares = [c / len(weights) for c in ensemble.coefficients]
    assert sum(shares) == pytest.approx(1)
    assert shares == pytest.approx([w / sum(weights) for w in weights])


@given(st.integers(1, 100_000), st.integers(1, 40))
def test_equal_data_sizes_are_exactly_uniform(examples, number):
    bank, updates, _ = mixed()
    teachers = [Teacher("mlp", updates[2].weights, float(examples))] * number
    assert set(Ensemble(bank, teachers, "mean_logits").coefficients) == {1.0}


def test_a_teacher_without_weight_is_not_heard():
    bank, updates, _ = mixed()
    heard, unheard = (Teacher(u.prototype, u.weights, w) for u, w in zip(updates[:2], (2.0, 0.0), strict=True))
    inputs = make_examples(5).inputs
    both, one = (Ensemble(bank, t, "mean_logits").log_probabilities(inputs) for t in ([heard, unheard], [heard]))
    torch.testing.assert_close(both, one)


def test_averages_and_samples_weigh_as_the_mean_of_their_clients():
    bank, updates, merged = mixed()
    trust = client_weights("examples", make_view(bank), updates)
    models = RoundModels(updates, merged, {p: make_weights(bank, p, 9) for p in merged}, Key(0), trust)
    assert [t.weight for t in ClientTeachers().gather(models)] == SIZES
    expected = {"norm": (5 + 20) / 2, "mlp": (40 + 11) / 2}
    for kind in (AverageTeacher(), GaussianTeachers(number=2), DirichletTeachers(number=2), SwagTeachers(number=2)):
        assert {t.prototype: t.weight for t in kind.gather(models)} == expected


def test_an_average_whose_clients_do_not_teach_weighs_as_all_who_do():
    bank, updates, merged = mixed()
    models = RoundModels(updates[:2], merged, {}, Key(0), client_weights("examples", make_view(bank), updates))
    assert {t.prototype: t.weight for t in AverageTeacher().gather(models)} == {"norm": 12.5, "mlp": 12.5}


def test_with_everybody_at_zero_all_count_the_same():
    bank, updates, _ = mixed()
    examples = make_examples(1)
    wrong = [u for u in updates if make_evaluator(examples).score(bank.lend(u.prototype, u.weights)).accuracy == 0]
    assert wrong, "or the test would prove nothing"
    view = make_view(bank, validation=make_evaluator(examples))
    assert set(client_weights("validation", view, wrong).values()) == {1.0}


@pytest.mark.parametrize("method", ["feddf", "1-ensemble"])
def test_validation_weights_need_a_validation_split(tmp_path, method):
    fuse = {**tiny_method(method)["fuse"], "weighting": "validation"}
    config = tiny_config(
        tiny_method(method, fuse=fuse), data={"name": "blobs", "examples": 150, "validation": 0, "public": 0.2}
    )
    with pytest.raises(ConfigError, match=r"data\.validation"):
        Experiment(config).run(tmp_path / "run")


@pytest.mark.parametrize("weighting", ["examples", "validation"])
def test_weighted_teachers_in_a_whole_run(tmp_path, without_pictures, weighting):  # noqa: ARG001
    fuse = {**tiny_method("feddf")["fuse"], "weighting": weighting}
    one, uniform = (
        Experiment(tiny_config(method)).run(tmp_path / str(i)).summary["prototypes"]["mlp"]["weights_sha256"]
        for i, method in enumerate([tiny_method("feddf", fuse=fuse), "feddf"])
    )
    assert one != uniform
