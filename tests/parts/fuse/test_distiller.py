"""The distiller against a hand-written loop, and its rules for stopping and for which student is kept."""

from __future__ import annotations

import math

import pytest
import torch

from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.experiment.config import assign, validate
from fedfuse.models import Mlp
from fedfuse.parts.fuse.distiller import DistillContext, Distiller
from fedfuse.parts.fuse.swa import Swa
from fedfuse.runtime.evaluate import Score
from fedfuse.runtime.optimizers import Adam, Sgd
from tests.helpers import TinyNorm, make_bank, make_evaluator, make_examples, make_source, make_weights

BANK = make_bank(norm=TinyNorm())
START = make_weights(BANK, "norm", 1)


def lessons_of(count, size=8):
    """Random inputs and random (log-)distributions."""

    def batch(i):
        random = torch.Generator().manual_seed(i)
        inputs = torch.randn(size, 4, generator=random)
        return inputs, torch.randn(size, 3, generator=random).mul(2).log_softmax(1)

    return [lambda i=i: batch(i) for i in range(count)]


class Told:
    """A validation split that gives out prepared accuracies, one after another."""

    def __init__(self, accuracies):
        self.left = list(accuracies)

    def score(self, model):  # noqa: ARG002
        return Score(self.left.pop(0), 0.0)


def distilled(distiller, batches, validation=None, bank=BANK, start=START, progress=lambda *_: None):
    student = bank.lend("norm", start)
    result = distiller.distil(student, batches, DistillContext(make_source(20), validation, Key(0), progress))
    return Weights.of(student), result


def by_hand(batches, rate, clip=None):
    """SGD on sum_c p log(p / q), written out, with a rate that is a function of the step."""
    model = make_bank(norm=TinyNorm()).lend("norm", START).train()
    for step, batch in enumerate(batches):
        inputs, target = batch()
        z = model(inputs)
        log_q = z - z.exp().sum(dim=1, keepdim=True).log()
        loss = (target.exp() * (target - log_q)).sum() / len(inputs)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        norm = math.sqrt(sum(float(g.double().pow(2).sum()) for g in gradients))
        scale = min(1.0, clip / norm) if clip else 1.0
        with torch.no_grad():
            for p, g in zip(model.parameters(), gradients, strict=True):
                p -= rate(step) * scale * g
    return Weights.of(model)


def near(one, other):
    return torch.allclose(one.flat, other.flat, rtol=1e-4, atol=1e-5)


class TestStep:
    def test_one_step_follows_the_gradient_of_the_divergence(self):
        result, _ = distilled(Distiller(optimizer=Sgd(learning_rate=0.3)), lessons_of(1))
        assert near(result, by_hand(lessons_of(1), lambda _: 0.3))
        assert not near(result, START)

    def test_the_rate_falls_as_a_cosine_over_the_budget(self):
        result, _ = distilled(Distiller(optimizer=Sgd(learning_rate=0.5)), lessons_of(8))
        cosine = by_hand(lessons_of(8), lambda step: 0.25 * (1 + math.cos(math.pi * step / 8)))
        assert near(result, cosine)
        assert not near(result, by_hand(lessons_of(8), lambda _: 0.5))

    def test_without_cosine_the_rate_is_constant(self):
        result, _ = distilled(Distiller(optimizer=Sgd(learning_rate=0.5), schedule="constant"), lessons_of(8))
        assert near(result, by_hand(lessons_of(8), lambda _: 0.5))

    @pytest.mark.parametrize("clip", [0.05, 1e6])
    def test_the_gradient_norm_is_bounded(self, clip):
        distiller = Distiller(optimizer=Sgd(learning_rate=0.5), schedule="constant", clip_norm=clip)
        result, _ = distilled(distiller, lessons_of(6))
        assert near(result, by_hand(lessons_of(6), lambda _: 0.5, clip))

    def test_a_bound_that_does_not_bite_changes_nothing(self):
        plain = Distiller(optimizer=Adam(), schedule="cosine")
        assert near(
            distilled(plain, lessons_of(5))[0], distilled(plain.model_copy(update={"clip_norm": 1e6}), lessons_of(5))[0]
        )

    def test_a_student_that_agrees_with_its_teacher_has_nothing_to_learn(self):
        student = BANK.lend("norm", START).train()
        inputs = lessons_of(1)[0]()[0]
        target = student(inputs).detach().log_softmax(1)
        result, _ = distilled(Distiller(optimizer=Sgd(learning_rate=1.0)), [lambda: (inputs, target)])
        assert torch.allclose(result.parameters, START.parameters, atol=1e-6)

    def test_the_divergence_falls(self):
        batches = lessons_of(1) * 200
        inputs, target = batches[0]()

        @torch.no_grad()
        def divergence(weights):
            log_q = BANK.lend("norm", weights).train()(inputs).log_softmax(1)
            return float((target.exp() * (target - log_q)).sum(1).mean())

        result, _ = distilled(Distiller(optimizer=Adam(learning_rate=0.02)), batches)
        assert divergence(result) < 0.3 * divergence(START)


def softened(z, temperature):
    """Hinton's q_c = exp(z_c / T) / sum exp(z / T)."""
    powers = (z.double() / temperature).exp()
    return powers / powers.sum(dim=1, keepdim=True)


class TestLosses:
    TARGET = torch.randn(6, 3, generator=torch.Generator().manual_seed(4)).mul(3).log_softmax(1)
    LOGITS = torch.randn(6, 3, generator=torch.Generator().manual_seed(5)).mul(2)

    def loss(self, **settings):
        return float(Distiller(**settings).distance(self.TARGET, self.LOGITS))

    @pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
    def test_kl_of_softened_predictions_scaled_by_the_square(self, temperature):
        teacher, student = softened(self.TARGET, temperature), softened(self.LOGITS, temperature)
        expected = temperature**2 * (teacher * (teacher / student).log()).sum(dim=1).mean()
        assert self.loss(temperature=temperature) == pytest.approx(float(expected), rel=1e-5)
        elementwise = self.loss(temperature=temperature, loss="kl_elementwise")
        assert elementwise == pytest.approx(float(expected) / 3, rel=1e-5)

    def test_at_a_high_temperature_it_is_the_squared_error_of_centred_logits(self):
        """The limit that Hinton et al. derive: (1 / 2K) |z_S - z_T|^2 for logits of mean zero."""
        teacher, student = (z.double() - z.double().mean(dim=1, keepdim=True) for z in (self.TARGET, self.LOGITS))
        limit = (teacher - student).square().sum(dim=1).mean() / (2 * 3)
        wide = Distiller(temperature=1e3).distance(self.TARGET.double(), self.LOGITS.double())
        assert float(wide) == pytest.approx(float(limit), rel=1e-2)

    def test_the_sum_of_both(self):
        assert self.loss(loss="kl_mse") == pytest.approx(self.loss(loss="kl") + self.loss(loss="mse"))
        soft = self.loss(loss="kl_mse", temperature=3.0)
        assert soft == pytest.approx(self.loss(loss="kl", temperature=3.0) + self.loss(loss="mse"))

    def test_squared_error_and_hard_labels(self):
        probabilities = self.TARGET.exp()
        assert self.loss(loss="mse") == pytest.approx(float((self.LOGITS - probabilities).square().mean()))
        labels = self.TARGET.argmax(dim=1)
        log_q = softened(self.LOGITS, 1).log()
        assert self.loss(loss="hard") == pytest.approx(-float(log_q[torch.arange(6), labels].mean()), rel=1e-5)


class TestWhichStudentIsKept:
    FIXED = Distiller(optimizer=Sgd(learning_rate=0.2), schedule="constant", evaluate_every=2, patience=4)

    def after(self, steps):
        return distilled(self.FIXED, lessons_of(steps))[0]

    def test_without_validation_the_last_one(self):
        weights, result = distilled(self.FIXED, lessons_of(7))
        assert near(weights, by_hand(lessons_of(7), lambda _: 0.2))
        assert (result.steps, result.best_step, result.validation_accuracy) == (7, 7, None)

    def test_the_best_one_and_training_stops_when_patience_ends(self):
        validation = Told([0.5, 0.6, 0.4, 0.4, 0.9])
        weights, result = distilled(self.FIXED, lessons_of(20), validation)
        assert (result.steps, result.best_step, result.validation_accuracy) == (8, 4, 0.6)
        assert weights.equals(self.after(4))
        assert validation.left == [0.9]

    def test_a_better_student_renews_patience(self):
        validation = Told([0.1, 0.1, 0.2, 0.1, 0.3, 0.1, 0.1])
        weights, result = distilled(self.FIXED, lessons_of(30), validation)
        assert (result.steps, result.best_step) == (14, 10)
        assert weights.equals(self.after(10))

    def test_of_equals_the_first(self):
        _, result = distilled(self.FIXED, lessons_of(6), Told([0.5, 0.5, 0.5]))
        assert result.best_step == 2

    def test_a_budget_below_the_first_look_is_looked_at_in_the_end(self):
        distiller = self.FIXED.model_copy(update={"evaluate_every": 100})
        weights, result = distilled(distiller, lessons_of(3), Told([0.5]))
        assert (result.steps, result.best_step, result.validation_accuracy) == (3, 3, 0.5)
        assert weights.equals(self.after(3))

    def test_a_budget_that_looks_do_not_divide_is_looked_at_in_the_end(self):
        _, result = distilled(self.FIXED, lessons_of(5), Told([0.1, 0.2, 0.3]))
        assert (result.steps, result.best_step) == (5, 5)

    def test_the_start_is_excluded_by_default(self):
        weights, result = distilled(self.FIXED, lessons_of(4), Told([0.0, 0.0]))
        assert result.best_step == 2
        assert not weights.equals(START)

    def test_keep_start_lets_the_start_win(self):
        distiller = self.FIXED.model_copy(update={"keep_start": True})
        weights, result = distilled(distiller, lessons_of(20), Told([0.9, 0.5, 0.9, 0.1]))
        assert (result.steps, result.best_step, result.validation_accuracy) == (4, 0, 0.9)
        assert weights.equals(START)

    def test_looking_does_not_change_the_student(self):
        distiller = self.FIXED.model_copy(update={"evaluate_every": 1, "patience": 100})
        rising = Told([i / 10 for i in range(6)])
        assert distilled(distiller, lessons_of(6), rising)[0].equals(self.after(6))

    def test_a_real_validation_split_gives_the_kept_students_accuracy(self):
        evaluator = make_evaluator(make_examples(30))
        weights, result = distilled(self.FIXED, lessons_of(10), evaluator)
        assert result.validation_accuracy == evaluator.score(BANK.lend("norm", weights)).accuracy


def test_dropout_comes_from_the_key_and_not_from_the_caller():
    bank = make_bank(norm=TinyNorm(dropout=0.5))
    start = make_weights(bank, "norm", 1)
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        state = torch.random.get_rng_state()
        results.append(distilled(Distiller(), lessons_of(4), bank=bank, start=start)[0])
        assert torch.equal(torch.random.get_rng_state(), state)
    assert results[0].equals(results[1])


def test_progress_is_told_at_every_look():
    told = []
    distiller = Distiller(evaluate_every=3)
    distilled(distiller, lessons_of(7), progress=lambda *what: told.append(what))
    assert told == [("distil", 3, 7), ("distil", 6, 7), ("distil", 7, 7)]


class TestDivergence:
    """Squared errors at a rate far too large: after some steps the weights are not finite."""

    WILD = Distiller(loss="mse", optimizer=Sgd(learning_rate=1e4), schedule="constant", evaluate_every=5)
    LINEAR = make_bank(norm=Mlp(hidden=()))

    def distilled(self, distiller, validation, steps=100):
        start = make_weights(self.LINEAR, "norm", 1)
        return distilled(distiller, lessons_of(steps), validation, self.LINEAR, start)

    def test_the_last_step_before_it_is_the_last_look(self):
        weights, result = self.distilled(self.WILD.model_copy(update={"keep": "last"}), None)
        assert not weights.is_finite()
        assert result.diverged_at == result.steps < 100
        assert result.report()["diverged_at"] == result.steps

    def test_it_loses_to_any_finite_student(self):
        """However bad: the only finite one here has no single answer right."""
        _, calm = self.distilled(self.WILD, None, steps=5)
        assert calm.diverged_at is None
        validation = make_evaluator(make_examples(30))
        weights, result = self.distilled(self.WILD, validation)
        assert weights.is_finite()
        assert result.best_step < result.diverged_at
        kept = validation.score(self.LINEAR.lend("norm", weights))
        assert kept.accuracy == result.validation_accuracy
        assert math.isfinite(kept.loss)

    def test_with_finite_weights_but_outputs_that_are_not_it_is_no_candidate_either(self):
        validation = Told([0.2, 0.9, 0.3])
        losses = iter([1.0, math.nan, 1.0])
        validation.score = lambda *_: Score(validation.left.pop(0), next(losses))
        distiller = Distiller(optimizer=Sgd(learning_rate=0.1), evaluate_every=2)
        _, result = distilled(distiller, lessons_of(6), validation)
        assert result.validation_accuracy == 0.3

    def test_it_does_not_spoil_an_average(self):
        swa = {"keep": "last", "evaluate_every": 100, "swa": Swa(collect_after=0, cycle=2, lowest=1.0)}
        weights, result = self.distilled(self.WILD.model_copy(update=swa), None)
        assert weights.is_finite()
        assert result.diverged_at == 100


class TestSettingsThatWouldDoNothing:
    @pytest.mark.parametrize(
        ("values", "reason"),
        [
            ({"steps": 7, "epochs": 20}, "steps and epochs both say how long to distil"),
            ({"steps": None, "epochs": None}, "give one of them"),
            ({"swa": {}}, "none is chosen by validation; set keep to last"),
            ({"keep": "last", "keep_start": True}, "set keep to best"),
            ({"loss": "mse", "temperature": 2.0}, "temperature softens kl, but loss is mse"),
            ({"loss": "hard", "temperature": 2.0}, "temperature softens kl, but loss is hard"),
        ],
    )
    def test_are_refused(self, values, reason):
        with pytest.raises(ValueError, match=reason):
            Distiller.model_validate(values)

    def test_ten_thousand_steps_unless_epochs_are_given(self):
        assert Distiller().steps == 10_000
        assert Distiller(epochs=3).steps is None
        assert Distiller(epochs=3, batch_size=5).budget(12) == 9
        assert Distiller.model_validate(Distiller(epochs=3).model_dump()) == Distiller(epochs=3)

    @pytest.mark.parametrize(("method", "key", "steps"), [("fedbe", "steps", 7), ("feddf", "epochs", 2)])
    def test_the_one_that_is_given_replaces_the_recipes_own(self, method, key, steps):
        """As asked for from a command line, on top of what a file says."""
        raw = {"data": {"name": "blobs"}, "models": {"mlp": {"arch": "mlp"}}, "method": method}
        distiller = validate(assign(raw, [f"method.fuse.distiller.{key}={steps}"])).method.fuse.distiller
        assert getattr(distiller, key) == steps
        assert getattr(distiller, {"steps": "epochs", "epochs": "steps"}[key]) is None

    def test_a_cosine_lowers_the_cycles_of_swa(self):
        swa = Swa(collect_after=0, cycle=2, lowest=0.5)
        both = Distiller(optimizer=Sgd(learning_rate=0.4), keep="last", swa=swa)
        expected = [0.2 * cycle * (1 + math.cos(math.pi * step / 4)) for step, cycle in enumerate((1, 0.5) * 2)]
        assert [both._rate(step, 4) for step in range(4)] == pytest.approx(expected)
