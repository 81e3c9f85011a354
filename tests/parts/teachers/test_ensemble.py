"""The ensemble against a hand-written loop over its teachers, who are asked and never changed."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
import torch

from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.models import Mlp
from fedfuse.parts.teachers import Asked, Ensemble, Question, Teacher
from fedfuse.runtime.pool import Pool, silence
from fedfuse.runtime.source import PREDICTION_BATCH, Source
from tests.helpers import CPU, TinyNorm, make_bank, make_evaluator, make_examples, make_source, make_weights

TARGETS = ["mean_logits", "mean_probabilities"]


def mixed():
    bank = make_bank(norm=TinyNorm(dropout=0.5), mlp=Mlp(hidden=(5,)), flat=Mlp(hidden=()))
    names = ["norm", "mlp", "norm", "flat", "mlp"]
    return bank, [Teacher(name, make_weights(bank, name, seed)) for seed, name in enumerate(names)]


def probabilities_by_hand(teachers, inputs, target):
    """Every teacher as a network of its own, one example at a time."""
    bank, _ = mixed()
    rows = []
    for x in inputs:
        answers = []
        for teacher in teachers:
            model = bank.lend(teacher.prototype, teacher.weights).eval()
            answers.append(model(x[None])[0].detach().double())
        if target == "mean_logits":
            rows.append(torch.stack(answers).mean(0).softmax(0))
        else:
            rows.append(torch.stack([a.softmax(0) for a in answers]).mean(0))
    return torch.stack(rows)


@pytest.mark.parametrize("target", TARGETS)
def test_a_mixed_ensemble_is_the_hand_written_one(target):
    bank, teachers = mixed()
    inputs = make_examples(9).inputs
    result = Ensemble(bank, teachers, target).log_probabilities(inputs)
    assert torch.allclose(result.exp().double(), probabilities_by_hand(teachers, inputs, target), atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_remembered_predictions_are_those_asked_directly(target):
    bank, teachers = mixed()
    ensemble, source = Ensemble(bank, teachers, target), make_source(PREDICTION_BATCH + 30)
    table = ensemble.predict(source, source.all_indices(), silence)
    assert torch.allclose(table, ensemble.log_probabilities(source.raw), atol=1e-5)


def test_predictions_are_filled_where_asked():
    bank, teachers = mixed()
    ensemble, source = Ensemble(bank, teachers, "mean_logits"), make_source(20)
    where = torch.tensor([3, 7, 11])
    table = ensemble.predict(source, where, silence)
    assert table.shape == (20, 3)
    assert torch.allclose(table[where], ensemble.log_probabilities(source.raw[where]), atol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_predictions_are_distributions(target):
    bank, teachers = mixed()
    total = Ensemble(bank, teachers, target).log_probabilities(make_examples(30).inputs).exp().sum(dim=1)
    assert torch.allclose(total, torch.ones(30), atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_copies_of_one_teacher_say_what_it_says(target):
    bank, teachers = mixed()
    inputs = make_examples(6).inputs
    one = Ensemble(bank, teachers[:1], target).log_probabilities(inputs)
    many = Ensemble(bank, teachers[:1] * 4, target).log_probabilities(inputs)
    assert torch.allclose(one, many, atol=1e-6)


def test_the_two_targets_differ():
    bank, teachers = mixed()
    inputs = make_examples(6).inputs
    one, other = (Ensemble(bank, teachers, target).log_probabilities(inputs) for target in TARGETS)
    assert not torch.allclose(one, other, atol=1e-4)


def test_teachers_are_not_changed_and_give_no_gradient():
    bank, teachers = mixed()
    before = [teacher.weights.sha256() for teacher in teachers]
    ensemble, source = Ensemble(bank, teachers, "mean_logits"), make_source(20)
    inputs = make_examples(9).inputs.requires_grad_()
    assert not ensemble.log_probabilities(inputs).requires_grad
    assert not ensemble.predict(source, source.all_indices(), silence).requires_grad
    assert [teacher.weights.sha256() for teacher in teachers] == before
    resident = bank.lend("norm", teachers[0].weights, "teacher")
    ensemble.log_probabilities(inputs)
    assert Weights.of(resident).equals(teachers[2].weights), "the last teacher asked, statistics included"
    assert all(p.grad is None for p in resident.parameters())


def test_teachers_do_not_take_the_students_place():
    bank, teachers = mixed()
    weights = make_weights(bank, "norm", 40)
    student = bank.lend("norm", weights)
    Ensemble(bank, teachers, "mean_logits").log_probabilities(make_examples(5).inputs)
    assert Weights.of(student).equals(weights)


def test_an_ensemble_can_be_scored_before_it_teaches():
    """Scoring runs in inference mode; a network first built in there must still be usable outside."""
    bank, teachers = mixed()
    ensemble, examples = Ensemble(bank, teachers, "mean_logits"), make_examples(9)
    score = make_evaluator(examples).score_logits(ensemble.log_probabilities)
    correct = ensemble.log_probabilities(examples.inputs).argmax(1) == examples.labels
    assert score.accuracy == pytest.approx(float(correct.float().mean()))


class Backwards(Pool):
    """Answers come in the wrong order, and from copies, as from other processes."""

    def map(self, what, work, items):  # noqa: ARG002
        for place in reversed(range(len(items))):
            there, item = pickle.loads(pickle.dumps((work, items[place])))
            yield place, there(item)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("weights", ["same", "different", "by input"])
def test_who_answers_and_when_never_changes_bits(target, weights):
    """Against the loop in its plainest form: every teacher's share is added to the table, one after another."""
    bank, teachers = mixed()
    source, asked = make_source(PREDICTION_BATCH + 30), torch.arange(3, PREDICTION_BATCH + 20)
    tables = {
        "same": [1.0] * len(teachers),
        "different": [0.1 * k + 0.3 for k in range(len(teachers))],
        "by input": list(torch.rand(len(teachers), len(source), bank.classes, generator=Key(1).torch())),
    }[weights]
    ensemble = Ensemble(bank, [replace(t, weight=w) for t, w in zip(teachers, tables, strict=True)], target)
    totals = torch.zeros(len(source), bank.classes)
    for teacher, coefficient in zip(teachers, ensemble.coefficients, strict=True):
        model = mixed()[0].lend(teacher.prototype, teacher.weights).eval()
        for where in asked.split(PREDICTION_BATCH):
            with torch.no_grad():
                logits = model(source.inputs(where))
            share = logits if target == "mean_logits" else logits.softmax(dim=1)
            totals[where] += (coefficient[where] if weights == "by input" else coefficient) * share
    average = totals / len(teachers)
    plain = average.log_softmax(dim=1) if target == "mean_logits" else average.clamp_min(1e-30).log()
    for pool in (Pool(), Backwards()):
        assert torch.equal(ensemble.predict(source, asked, silence, pool)[asked], plain[asked])


def test_a_teacher_has_the_experiments_threads_wherever_it_is_asked():
    bank, teachers = mixed()
    bank.compute = replace(CPU, threads=3)
    seen = []

    class Watching(Source):
        def inputs(self, indices):
            seen.append(torch.get_num_threads())
            return super().inputs(indices)

    source = Watching(**vars(make_source(4)))
    Question(bank, Asked.about(source, source.all_indices()).batches, "mean_logits")(teachers[0])
    assert seen == [3]


def test_how_much_a_teacher_counts_does_not_travel():
    """It may be a table as large as all answers."""
    bank, teachers = mixed()
    source = make_source(20)
    seen = []

    class Watching(Pool):
        def map(self, what, work, items):
            seen.extend(items)
            return super().map(what, work, items)

    heavy = [replace(teacher, weight=torch.ones(20, bank.classes)) for teacher in teachers]
    Ensemble(bank, heavy, "mean_logits").predict(source, source.all_indices(), silence, Watching())
    assert [teacher.weight for _, teacher in seen] == [1.0] * len(teachers)


def test_progress_is_told():
    bank, teachers = mixed()
    told = []
    source = make_source(20)
    Ensemble(bank, teachers, "mean_logits").predict(source, source.all_indices(), lambda *what: told.append(what))
    assert told == [("teachers", done, 5) for done in range(6)]
