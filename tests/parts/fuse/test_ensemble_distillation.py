"""FedDF's fusion: every prototype present is taught by all teachers, and nothing else moves."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights, mean
from fedfuse.data import Transform
from fedfuse.data.dataset import Normalisation
from fedfuse.models import Cnn, Mlp
from fedfuse.parts.fuse import Distiller, EnsembleDistillation, NoFusion, Swa
from fedfuse.parts.teachers import Ensemble, Teacher
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.batch_norm import reestimate
from fedfuse.runtime.batches import endless_batches
from fedfuse.runtime.optimizers import Adam, Sgd
from fedfuse.runtime.source import Source
from tests.helpers import (
    CPU,
    FEATURES,
    TinyNorm,
    make_bank,
    make_evaluator,
    make_examples,
    make_source,
    make_update,
    make_view,
    make_weights,
)

DISTILLER = Distiller(steps=6, batch_size=5, optimizer=Sgd(learning_rate=0.3), evaluate_every=2)


def mixed():
    bank = make_bank(norm=TinyNorm(), mlp=Mlp(hidden=(5,)), flat=Mlp(hidden=()))
    names = ["norm", "norm", "mlp", "mlp"]
    updates = [make_update(make_weights(bank, p, i), client=i, prototype=p) for i, p in enumerate(names)]
    merged = {p: mean([u.weights for u in updates if u.prototype == p], [1.0, 1.0]) for p in ("norm", "mlp")}
    return bank, updates, merged


def fused(fuse, bank, updates, merged, **view):
    surroundings = {"source": make_source(23), **view}
    previous = {p: make_weights(bank, p, 70) for p in bank.prototypes}
    return fuse.fuse(make_view(bank, previous, **surroundings), merged, updates)


def divergence(bank, prototype, weights, updates, source):
    """KL(ensemble || student) on the source, by hand, everybody in eval mode."""
    inputs = source.raw
    logits = [bank.lend(u.prototype, u.weights).eval()(inputs).detach() for u in updates]
    target = torch.stack(logits).mean(0).log_softmax(1)
    student = bank.lend(prototype, weights).eval()(inputs).detach().log_softmax(1)
    return float((target.exp() * (target - student)).sum(1).mean())


def test_steps_are_the_papers_equation():
    """x_j = x_{j-1} - eta_j d KL(softmax(mean logits), softmax(f(x_{j-1}))), on the batches of the key."""
    bank, updates, merged = mixed()
    source, key = make_source(23), Key(0)
    result = fused(EnsembleDistillation(distiller=DISTILLER), bank, updates, merged, source=source)
    own = make_bank(norm=TinyNorm(), mlp=Mlp(hidden=(5,)))
    for prototype in ("norm", "mlp"):
        batches = endless_batches(23, 5, key.child("batches"))
        x = {name: t.clone() for name, t in merged[prototype].items()}
        for step in range(6):
            inputs = source.raw[next(batches)]
            teachers = [own.lend(u.prototype, u.weights).eval()(inputs).detach() for u in updates]
            target = torch.stack(teachers).mean(0).softmax(1)
            student = own.lend(
                prototype, Weights(torch.cat([t.reshape(-1) for t in x.values()]), merged[prototype].layout)
            )
            student.train()
            loss = (target * (target.log() - student(inputs).log_softmax(1))).sum(1).mean()
            loss.backward()
            rate = 0.15 * (1 + math.cos(math.pi * step / 6))
            x = {name: student.state_dict()[name].detach().clone() for name in x}
            for name, parameter in student.named_parameters():
                x[name] -= rate * parameter.grad
                parameter.grad = None
        for name, tensor in x.items():
            assert torch.allclose(result.weights[prototype][name], tensor, rtol=1e-4, atol=1e-5), (prototype, name)


def test_absent_prototypes_learn_from_their_previous_weights_on():
    """As if their clients had averaged to those; as coded they stay out."""
    bank, updates, merged = mixed()
    fuse = EnsembleDistillation(distiller=DISTILLER)
    result = fused(fuse, bank, updates, merged)
    assert set(result.weights) == {"norm", "mlp", "flat"}
    previous = make_weights(bank, "flat", 70)
    assert not result.weights["flat"].equals(previous)
    as_if_merged = fused(fuse, bank, updates, {**merged, "flat": previous})
    assert all(result.weights[p].equals(as_if_merged.weights[p]) for p in bank.prototypes)
    kept = fused(EnsembleDistillation(distiller=DISTILLER, absent="keep"), bank, updates, merged)
    assert set(kept.weights) == {"norm", "mlp"}
    assert all(kept.weights[p].equals(result.weights[p]) for p in merged)


def test_each_prototype_learns_from_all_teachers():
    bank, updates, merged = mixed()
    fuse = EnsembleDistillation(distiller=DISTILLER)
    everybody = fused(fuse, bank, updates, merged)
    own_only = fused(fuse, bank, [u for u in updates if u.prototype == "mlp"], merged)
    assert not everybody.weights["mlp"].equals(own_only.weights["mlp"])


def test_students_do_not_influence_each_other():
    bank, updates, merged = mixed()
    fuse = EnsembleDistillation(distiller=DISTILLER)
    together = fused(fuse, bank, updates, merged).weights
    for prototype in merged:
        alone = fused(fuse, bank, updates, {prototype: merged[prototype]}).weights
        assert alone[prototype].equals(together[prototype])
    backwards = fused(fuse, bank, updates, dict(reversed(merged.items()))).weights
    assert all(backwards[p].equals(together[p]) for p in merged)


def test_the_student_comes_nearer_to_the_ensemble():
    bank, updates, merged = mixed()
    distiller = Distiller(steps=150, batch_size=16, optimizer=Adam(learning_rate=0.02))
    source = make_source(64)
    result = fused(EnsembleDistillation(distiller=distiller), bank, updates, merged, source=source)
    for prototype, start in merged.items():
        before = divergence(bank, prototype, start, updates, source)
        assert divergence(bank, prototype, result.weights[prototype], updates, source) < 0.5 * before


def test_teachers_are_unchanged():
    bank, updates, merged = mixed()
    before = [u.weights.sha256() for u in updates] + [w.sha256() for w in merged.values()]
    for views in ("fixed", "augmented"):
        fused(EnsembleDistillation(distiller=DISTILLER, views=views), bank, updates, merged)
    assert [u.weights.sha256() for u in updates] + [w.sha256() for w in merged.values()] == before
    assert all(p.grad is None for p in bank.lend("norm", updates[0].weights, "teacher").parameters())


@pytest.mark.parametrize("fuse", [NoFusion(), EnsembleDistillation(distiller=Distiller(steps=0))])
def test_no_steps_leave_the_merged_weights(fuse):
    bank, updates, merged = mixed()
    result = fused(fuse, bank, updates, merged)
    assert all(result.weights[p].equals(merged[p]) for p in merged)


@pytest.mark.parametrize("views", ["fixed", "augmented"])
def test_a_student_that_all_teachers_are_stays_as_it_is(views):
    """One client in the round: Algorithm 1 leaves its model, where Adam would make steps of rounding."""
    bank, updates, _ = mixed()
    alone = [updates[2]]
    merged = {"mlp": updates[2].weights}
    fuse = EnsembleDistillation(distiller=DISTILLER.model_copy(update={"optimizer": Adam()}), views=views)
    result = fused(fuse, bank, alone, merged)
    assert result.weights["mlp"].equals(updates[2].weights)
    assert result.report["mlp"] == {"steps": 0, "best_step": 0}
    assert result.report["norm"]["steps"] == 6, "the others have a teacher"


@pytest.mark.parametrize(
    "more",
    [{"sharpening": 2.0}, {"views": "student"}, {"distiller": DISTILLER.model_copy(update={"loss": "mse"})}],
    ids=["sharpened", "other views", "other loss"],
)
def test_unless_there_is_something_to_learn_from_oneself(more):
    bank, updates, _ = mixed()
    fuse = EnsembleDistillation(**{"distiller": DISTILLER, **more})
    result = fused(fuse, bank, [updates[2]], {"mlp": updates[2].weights})
    assert result.report["mlp"]["steps"] == 6


def test_start_previous_begins_at_the_broadcast_weights():
    bank, updates, merged = mixed()
    previous = {p: make_weights(bank, p, 70) for p in bank.prototypes}
    from_previous = fused(EnsembleDistillation(distiller=DISTILLER, start="previous"), bank, updates, merged)
    as_if_merged = fused(EnsembleDistillation(distiller=DISTILLER), bank, updates, {p: previous[p] for p in merged})
    assert all(from_previous.weights[p].equals(as_if_merged.weights[p]) for p in merged)
    assert not from_previous.weights["mlp"].equals(
        fused(EnsembleDistillation(distiller=DISTILLER), bank, updates, merged).weights["mlp"]
    )


@pytest.mark.parametrize("target", ["mean_logits", "mean_probabilities"])
def test_without_augmentation_fresh_views_are_the_fixed_ones(target):
    bank, updates, merged = mixed()
    fixed, fresh = (
        fused(EnsembleDistillation(distiller=DISTILLER, views=views, target=target), bank, updates, merged)
        for views in ("fixed", "augmented")
    )
    for prototype in merged:
        assert torch.allclose(fixed.weights[prototype].flat, fresh.weights[prototype].flat, rtol=1e-4, atol=1e-5)


def test_with_augmentation_views_differ_and_come_from_the_key():
    bank = ModelBank({"cnn": Cnn(arch="cnn1")}, (1, 8, 8), 3, CPU)
    raw = torch.randint(0, 256, (12, 1, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    source = Source("images", raw, Transform(Normalisation((0.5,), (0.5,)), (1, 8, 8), crop_padding=2, flip=True), CPU)
    updates = [make_update(bank.initial("cnn", Key(i)), client=i, prototype="cnn") for i in range(2)]
    merged = {"cnn": mean([u.weights for u in updates], [1.0, 1.0])}
    results = [
        EnsembleDistillation(distiller=DISTILLER, views=views)
        .fuse(make_view(bank, merged, source=source, key=Key(seed)), merged, updates)
        .weights["cnn"]
        for views, seed in (("augmented", 0), ("augmented", 0), ("augmented", 1), ("fixed", 0))
    ]
    assert results[0].equals(results[1])
    assert len({weights.sha256() for weights in results}) == 3


class TestFreshInputs:
    """Every step has inputs of its own: as many as a batch has, and teachers answer for them."""

    @staticmethod
    def draw(count, key):
        return torch.randn(count, FEATURES, generator=key.torch())

    def source(self, **more):
        return replace(make_source(23), draw=self.draw, **more)

    def test_steps_are_the_papers_equation_on_new_inputs(self):
        bank, updates, merged = mixed()
        result = fused(EnsembleDistillation(distiller=DISTILLER), bank, updates, merged, source=self.source())
        own = make_bank(norm=TinyNorm(), mlp=Mlp(hidden=(5,)))
        student = own.lend("mlp", merged["mlp"]).train()
        for step in range(6):
            inputs = self.draw(5, Key(0).child("views", step, "draw"))
            teachers = [own.lend(u.prototype, u.weights, "teacher").eval()(inputs).detach() for u in updates]
            target = torch.stack(teachers).mean(0).softmax(1)
            (target * (target.log() - student(inputs).log_softmax(1))).sum(1).mean().backward()
            with torch.no_grad():
                for parameter in student.parameters():
                    parameter -= 0.15 * (1 + math.cos(math.pi * step / 6)) * parameter.grad
                    parameter.grad = None
        assert torch.allclose(result.weights["mlp"].flat, Weights.of(student).flat, rtol=1e-4, atol=1e-5)

    def test_all_students_have_the_same_and_every_round_its_own(self):
        bank, updates, merged = mixed()
        fuse, source = EnsembleDistillation(distiller=DISTILLER), self.source()
        together = fused(fuse, bank, updates, merged, source=source).weights
        alone = fused(fuse, bank, updates, {"mlp": merged["mlp"]}, source=source).weights
        assert alone["mlp"].equals(together["mlp"])
        later = fused(fuse, bank, updates, merged, source=source, key=Key(1)).weights
        assert not later["mlp"].equals(together["mlp"])

    @pytest.mark.parametrize("views", ["fixed", "student", "augmented"])
    def test_who_sees_which_view(self, views):
        """Padding is black and noise is not, so a crop shows; whoever sees it answers otherwise."""
        transform = Transform(Normalisation((0.5,), (0.5,)), (1, 8, 8), crop_padding=4)
        source = Source("noise", torch.zeros(12, 1, 8, 8, dtype=torch.uint8), transform, CPU, draw=_bright)
        bank = ModelBank({"cnn": Cnn(arch="cnn1")}, (1, 8, 8), 3, CPU)
        ensemble = Ensemble(bank, [Teacher("cnn", bank.initial("cnn", Key(7)))], "mean_logits")
        fuse = EnsembleDistillation(distiller=DISTILLER, views=views)
        for batch in fuse._batches(make_view(bank, source=source), source, ensemble):
            shown, target = batch()
            assert shown.shape == (5, 1, 8, 8)
            assert bool((shown == -1).any()) == (views != "fixed")
            is_answer_to_shown = torch.equal(target, ensemble.log_probabilities(shown))
            assert is_answer_to_shown == (views != "student")

    def test_swa_estimates_statistics_on_the_table(self):
        bank, updates, merged = mixed()
        distiller = DISTILLER.model_copy(update={"keep": "last", "swa": Swa(collect_after=0, cycle=2)})
        source = self.source()
        result = fused(EnsembleDistillation(distiller=distiller), bank, updates, merged, source=source)
        student = bank.lend("norm", result.weights["norm"])
        reestimate(student, make_source(23))
        assert Weights.of(student).equals(result.weights["norm"])


def _bright(count, key):
    return torch.randint(1, 256, (count, 1, 8, 8), dtype=torch.uint8, generator=key.torch())


def test_the_report_says_what_was_done():
    bank, updates, merged = mixed()
    fuse = EnsembleDistillation(distiller=DISTILLER)
    assert fused(fuse, bank, updates, merged).report["mlp"] == {"steps": 6, "best_step": 6}
    evaluator = make_evaluator(make_examples(20))
    result = fused(fuse, bank, updates, merged, validation=evaluator)
    kept = evaluator.score(bank.lend("mlp", result.weights["mlp"])).accuracy
    assert result.report["mlp"]["validation_accuracy"] == kept


def test_the_ensemble_is_the_one_the_students_imitate():
    bank, updates, _ = mixed()
    inputs = make_examples(9).inputs
    logits = [bank.lend(u.prototype, u.weights).eval()(inputs).detach() for u in updates]
    answer = EnsembleDistillation().ensemble(make_view(bank), {}, updates)(inputs)
    assert torch.allclose(answer, torch.stack(logits).mean(0).log_softmax(1), atol=1e-5)
    assert NoFusion().ensemble(make_view(bank), {}, updates) is None


def test_more_steps_than_inputs_go_round():
    bank, updates, merged = mixed()
    result = fused(EnsembleDistillation(distiller=DISTILLER), bank, updates, merged, source=make_source(3))
    assert result.report["norm"]["steps"] == 6


def test_students_have_the_experiments_threads_wherever_they_are_taught():
    bank, updates, merged = mixed()
    bank.compute = replace(CPU, threads=3)
    seen = set()
    fuse = EnsembleDistillation(distiller=DISTILLER)
    fused(fuse, bank, updates, merged, progress=lambda what, *_: seen.add((what, torch.get_num_threads())))
    assert seen == {("teachers", 3), ("distil", 3)}
