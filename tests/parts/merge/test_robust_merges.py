"""Robust merges against computations of their own, written from the papers' formulas, and what each of them bears."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import trim_mean

from fedfuse.core.errors import ConfigError
from fedfuse.core.weights import Weights
from fedfuse.federation.shelf import Shelf
from fedfuse.parts.merge import (
    Bucketing,
    Bulyan,
    CentredClipping,
    FLTrust,
    GeometricMedian,
    Mean,
    Median,
    Momentum,
    NearestMixing,
    Soup,
    TrimmedMean,
)
from fedfuse.parts.merge import robust as robust_merges
from fedfuse.parts.merge.fltrust import SERVER
from fedfuse.runtime.training import TrainingSettings
from tests.helpers import make_evaluator, make_examples
from tests.parts.robust_material import (
    BANK,
    BASE,
    COUNT,
    HONEST_AND_HOSTILE,
    anywhere,
    around,
    check_context,
    merged,
    parameters,
    rows,
    updates_of,
    view_of,
)

EVERY = [
    Median(),
    TrimmedMean(),
    GeometricMedian(),
    CentredClipping(),
    Bulyan(),
    NearestMixing(),
    Bucketing(),
    NearestMixing(then=CentredClipping()),
    Bucketing(then=NearestMixing(then=Median())),
]
every = pytest.mark.parametrize("part", EVERY, ids=lambda part: f"{part.kind}-{getattr(part, 'then', part).kind}")


def near(found, expected, tolerance=1e-5):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


class TestEvery:
    """Laws that all of them keep."""

    @every
    def test_of_copies_of_one_model_it_is_that_model(self, part):
        near(merged(part, [around(1)[0]] * 7), rows(around(1))[0])

    @every
    def test_one_model_alone_is_itself(self, part):
        near(merged(part, around(1)), rows(around(1))[0])

    @every
    @pytest.mark.parametrize("number", [2, 3, 4])
    def test_few_models_give_something_between_them(self, part, number):
        models = around(number, seed=3)
        found, low, high = merged(part, models), rows(models).min(axis=0), rows(models).max(axis=0)
        if not isinstance(getattr(part, "then", part), CentredClipping):  # which begins where the round began
            assert (found >= low - 1e-5).all()
            assert (found <= high + 1e-5).all()
        assert np.isfinite(found).all()

    @every
    def test_the_order_of_clients_does_not_matter(self, part):
        if isinstance(part, Bucketing):
            return  # its buckets are drawn by place
        models = around(9, seed=5)
        near(merged(part, models), merged(part, models[::-1]))

    @every
    def test_statistics_stay_inside_the_honest_ones(self, part):
        models = [*around(9, seed=4), *anywhere(1, 1e6)]
        found = merged(part, models)[COUNT:]
        honest = rows(models[:9])[:, COUNT:]
        if not isinstance(part, NearestMixing | Bucketing):
            assert (found >= honest.min(axis=0) - 1e-6).all()
            assert (found <= honest.max(axis=0) + 1e-6).all()
        assert (found > 0).all()

    @every
    @settings(max_examples=15)
    @given(case=HONEST_AND_HOSTILE)
    def test_a_few_that_are_anywhere_do_not_matter(self, part, case):
        """The result stays as near to the honest mean as the honest models are, however far the others go."""
        _, _, far, seed = case
        models = [*around(10, seed), *anywhere(1, far, seed)]
        honest = parameters(models[:10])
        apart = np.linalg.norm(merged(part, models)[:COUNT] - honest.mean(axis=0))
        assert apart <= 2 * np.linalg.norm(honest - honest.mean(axis=0), axis=1).max()

    @every
    def test_on_a_shelf_it_is_the_same(self, part, monkeypatch):
        """Updates that lie in a file, and pieces of a few numbers."""
        models = around(8, seed=6)
        expected = merged(part, models)
        monkeypatch.setattr("fedfuse.federation.shelf.IN_MEMORY", 0)
        monkeypatch.setattr("fedfuse.parts.robust.AT_ONCE", 64)
        monkeypatch.setattr("fedfuse.parts.merge.mixtures.AT_ONCE", 64)
        shelf = Shelf(None)
        held = [shelf.hold(update) for update in updates_of(models)]
        assert type(held[0].weights).__name__ == "ShelvedWeights"
        near(part.merge(view_of(), "mlp", held).weights.flat.double().numpy(), expected)


class TestCoordinates:
    @given(st.integers(1, 12), st.integers(0, 1000))
    @settings(max_examples=25)
    def test_the_median_is_numpys(self, number, seed):
        models = around(number, seed)
        near(merged(Median(), models), np.median(rows(models), axis=0))

    @given(st.integers(1, 12), st.sampled_from([0.1, 0.2, 0.35, 0.49]))
    @settings(max_examples=25)
    def test_the_trimmed_mean_is_scipys(self, number, share):
        models = around(number, number)
        near(merged(TrimmedMean(hostile=share), models)[:COUNT], trim_mean(parameters(models), share, axis=0))

    def test_nobody_trimmed_is_the_mean(self):
        models = around(5)
        near(merged(TrimmedMean(hostile=0), models)[:COUNT], parameters(models).mean(axis=0))

    @given(HONEST_AND_HOSTILE)
    @settings(max_examples=25)
    def test_every_number_lies_between_two_honest_ones(self, case):
        honest, hostile, far, seed = case
        models = [*around(honest, seed), *anywhere(hostile, far, seed)]
        for part in (Median(), TrimmedMean(hostile=hostile)):
            found, good = merged(part, models), rows(models[:honest])
            assert (found >= good.min(axis=0) - 1e-5).all()
            assert (found <= good.max(axis=0) + 1e-5).all()

    def test_with_one_too_many_it_breaks(self):
        """The bound is sharp: what is beyond it goes where the hostile ones go."""
        models = [*around(3), *anywhere(3, 1e9)]
        assert np.abs(merged(TrimmedMean(hostile=2), models)).max() > 1e6
        assert np.abs(merged(TrimmedMean(hostile=2), [*around(3), *anywhere(2, 1e9)])).max() < 100


class TestGeometricMedian:
    def test_it_has_the_smallest_sum_of_distances(self):
        models = [*around(6, seed=2), *anywhere(2, 30.0)]
        counts = np.array([3, 1, 4, 1, 5, 9, 2, 6])
        points = parameters(models)
        found = merged(GeometricMedian(iterations=300), models, counts.tolist())[:COUNT]

        def total(z):
            return float(counts @ np.linalg.norm(points - z, axis=1))

        best = minimize(total, points.mean(axis=0), method="BFGS", options={"gtol": 1e-9})
        assert total(found) == pytest.approx(best.fun, rel=1e-6)

    @pytest.mark.parametrize("iterations", [1, 3])
    def test_an_iteration_is_weiszfelds(self, iterations):
        models, counts = around(5, seed=8), np.array([1, 2, 3, 4, 5.0])
        points, shares = parameters(models), counts / counts.sum()
        centre = shares @ points
        for _ in range(iterations):
            weights = shares / np.maximum(1e-6, np.linalg.norm(points - centre, axis=1))
            centre = weights @ points / weights.sum()
        near(merged(GeometricMedian(iterations=iterations), models, [1, 2, 3, 4, 5])[:COUNT], centre)

    def test_examples_decide_who_is_the_majority(self):
        models = [*around(3, spread=0.1), *anywhere(4, 1e3)]
        outvoted = merged(GeometricMedian(weighting="examples"), models, [100, 100, 100, 1, 1, 1, 1])
        assert np.abs(outvoted[:COUNT] - parameters([BASE])[0]).max() < 50


class TestCentredClipping:
    @pytest.mark.parametrize("radius", [0.5, 3.0, None])
    def test_is_the_papers_iteration_with_a_memory(self, radius):
        part, memory, start = CentredClipping(radius=radius, iterations=2), {}, np.zeros(COUNT)
        for seed in range(3):
            models = around(7, seed)
            moves = parameters(models) - parameters([BASE])
            for _ in range(2):
                apart = np.linalg.norm(moves - start, axis=1)
                tau = np.median(apart) if radius is None else radius
                start = start + ((moves - start) * np.minimum(1, tau / apart)[:, None]).mean(axis=0)
            result = part.merge(view_of(memory=memory), "mlp", updates_of(models))
            memory = result.memory
            near(result.weights.parameters.double().numpy(), parameters([BASE])[0] + start, 1e-4)
        assert set(memory) == {"centre"}

    @given(st.integers(1, 9), st.floats(0.1, 5))
    @settings(max_examples=20)
    def test_nobody_moves_it_farther_than_the_radius(self, number, radius):
        models = anywhere(number, 1e6)
        found = merged(CentredClipping(radius=radius, iterations=1), models)[:COUNT]
        assert np.linalg.norm(found - parameters([BASE])[0]) <= radius * 1.001 + 1e-3

    def test_it_may_forget(self):
        result = CentredClipping(remember=False).merge(view_of(), "mlp", updates_of(around(4)))
        assert not result.memory


def krum_by_loop(points, hostile):
    scores = []
    for k in range(len(points)):
        apart = sorted(float(np.sum((points[k] - points[j]) ** 2)) for j in range(len(points)) if j != k)
        scores.append(sum(apart[: max(1, len(points) - hostile - 2)]))
    return int(np.argmin(scores))


class TestBulyan:
    @pytest.mark.parametrize(("number", "hostile"), [(7, 1), (8, 1), (11, 2), (5, 0)])
    def test_is_krum_again_and_again_then_a_mean_around_the_median(self, number, hostile):
        models = around(number, seed=number)
        left, chosen = list(parameters(models)), []
        while len(chosen) < number - 2 * hostile:
            chosen.append(left.pop(krum_by_loop(np.stack(left), hostile)))
        points = np.stack(chosen)
        expected = []
        for column in points.T:
            order = np.argsort(np.abs(column - np.median(column)), kind="stable")
            expected.append(column[order[: len(points) - 2 * hostile]].mean())
        near(merged(Bulyan(hostile=hostile), models)[:COUNT], expected)

    def test_one_number_that_is_far_off_is_not_heard(self):
        """What Krum alone lets through: a model that is near as a whole."""
        models = around(7, spread=0.01)
        bent = models[3].flat.clone()
        bent[5] += 1.0
        found = merged(Bulyan(hostile=1), [*models[:3], Weights(bent, BASE.layout), *models[4:]])
        assert abs(found[5] - parameters([BASE])[0][5]) < 0.1

    def test_too_few_clients_are_refused(self):
        Bulyan(hostile=1).check(check_context(7))
        with pytest.raises(ConfigError, match=r"bulyan with hostile 2 takes 2 of a round's 10 clients .* needs 11"):
            Bulyan(hostile=2).check(check_context(10))


class TestMixing:
    @pytest.mark.parametrize("hostile", [0, 1, 3])
    def test_a_mixture_is_the_mean_of_the_nearest(self, hostile):
        models = around(8, seed=9)
        points = parameters(models)
        mixed = []
        for k in range(8):
            order = sorted(range(8), key=lambda j: float(np.sum((points[k] - points[j]) ** 2)))
            mixed.append(points[order[: 8 - hostile]].mean(axis=0))
        found = merged(NearestMixing(hostile=hostile, then=Median()), models)[:COUNT]
        near(found, np.median(np.stack(mixed), axis=0))

    def test_with_nobody_hostile_all_mixtures_are_the_mean(self):
        models = around(6)
        near(merged(NearestMixing(hostile=0, then=Median()), models), rows(models).mean(axis=0))

    def test_buckets_of_one_are_the_clients(self):
        models = around(7)
        near(merged(Bucketing(size=1, then=Median()), models), merged(Median(), models))

    def test_one_bucket_is_the_mean(self):
        models = around(5)
        near(merged(Bucketing(size=5, then=Median()), models), rows(models).mean(axis=0))

    def test_buckets_hold_everybody_once(self):
        part = Bucketing(size=3)
        shares = part.shares(view_of(), "mlp", updates_of(around(8))).numpy()
        assert shares.shape == (3, 8)
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        assert ((shares > 0).sum(axis=0) == 1).all()
        other = part.shares(view_of(key=view_of().key.child("round", 2)), "mlp", updates_of(around(8))).numpy()
        assert not np.array_equal(shares, other), "another round, other buckets"

    @pytest.mark.parametrize("wrapper", [NearestMixing, Bucketing])
    def test_a_mean_of_mixtures_of_equal_size_is_the_mean(self, wrapper):
        models = around(6)
        part = wrapper(then=Mean(), **({"size": 2} if wrapper is Bucketing else {"hostile": 0}))
        near(merged(part, models), rows(models).mean(axis=0))

    def test_the_other_merge_keeps_its_memory(self):
        part = NearestMixing(then=Momentum(beta=0.5))
        first = part.merge(view_of(), "mlp", updates_of(around(5)))
        assert set(first.memory) == {"velocity"}
        again = part.merge(view_of(memory=first.memory), "mlp", updates_of(around(5)))
        assert not again.weights.equals(first.weights)

    def test_merges_that_look_at_more_than_weights_are_refused(self):
        class Reading(Mean):
            needs_source = True

        with pytest.raises(ConfigError, match=r"gives merge .* mixtures of models, which it cannot work with"):
            NearestMixing.model_construct(then=Reading.model_construct(kind="reading")).check(check_context(9))
        with pytest.raises(ValueError, match="soup"):
            Bucketing(then=Soup().model_dump())
        with pytest.raises(ConfigError, match="trimmed_mean with hostile 4"):
            Bucketing(then=TrimmedMean(hostile=4)).check(check_context(6))


class TestFLTrust:
    TRAINING = TrainingSettings(epochs=2, batch_size=5)

    def validation(self):
        return make_evaluator(make_examples(20, seed=3))

    def test_is_the_papers_formula(self, monkeypatch):
        own = torch.randn(COUNT, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        monkeypatch.setattr(FLTrust, "reference", lambda *_: BASE.parameters.double() + own)
        models = around(6, seed=3)
        reference, moves = own.numpy(), parameters(models) - parameters([BASE])
        norm = np.linalg.norm
        trust = [max(0.0, move @ reference / norm(move) / norm(reference)) for move in moves]
        assert 0 in trust
        assert sum(trust) > 0
        expected = sum(t * norm(reference) / norm(m) * m for t, m in zip(trust, moves, strict=True)) / sum(trust)
        near(merged(FLTrust(), models)[:COUNT], parameters([BASE])[0] + expected)

    def test_the_reference_is_what_the_server_learns(self):
        view = view_of(validation=self.validation())
        found = FLTrust(training=self.TRAINING).reference(view, "mlp")
        model = BANK.lend("mlp", BASE, role="by hand")
        model.train()
        rate, examples = self.TRAINING.rate(1, 1), make_examples(20, seed=3)
        assert SERVER < 0
        assert not torch.equal(found, BASE.parameters.double())
        # One pass over everything as one batch, without shuffling to follow: the first step is known.
        whole = FLTrust(training=TrainingSettings(epochs=1, batch_size=20, shuffle=False)).reference(view, "mlp")
        loss = torch.nn.functional.cross_entropy(model(examples.inputs), examples.labels)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        step = BASE.parameters - rate * torch.cat([gradient.reshape(-1) for gradient in gradients])
        near(whole.numpy(), step.double().numpy())

    @pytest.mark.parametrize("hostile", [2, 8])
    def test_who_goes_the_other_way_is_not_trusted_however_many_they_are(self, hostile):
        view = view_of(validation=self.validation())
        part = FLTrust(training=self.TRAINING)
        own = part.reference(view, "mlp").float() - BASE.parameters
        honest = [BASE.with_parameters(BASE.parameters + own), BASE.with_parameters(BASE.parameters + 0.5 * own)]
        opposite = [BASE.with_parameters(BASE.parameters - 1000 * own)] * hostile
        found = part.merge(view, "mlp", updates_of([*honest, *opposite])).weights.parameters
        torch.testing.assert_close(found, BASE.parameters + own, rtol=1e-4, atol=1e-5)

    def test_where_nobody_is_trusted_the_parameters_stay(self):
        view = view_of(validation=self.validation())
        part = FLTrust(training=self.TRAINING)
        own = part.reference(view, "mlp").float() - BASE.parameters
        found = part.merge(view, "mlp", updates_of([BASE.with_parameters(BASE.parameters - own), BASE])).weights
        assert torch.equal(found.parameters, BASE.parameters)

    def test_without_examples_of_its_own_it_is_refused(self):
        with pytest.raises(ConfigError, match=r"labelled examples of the server's own; set data.validation"):
            FLTrust().check(check_context(5, has_validation=False))


def test_medians_of_an_even_number_are_between_the_two():
    values = torch.tensor([[1.0], [2.0], [10.0], [4.0]])
    assert robust_merges.medians(values).item() == 3.0
