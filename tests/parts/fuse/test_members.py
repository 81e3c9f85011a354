"""Who teaches: sampled models have the moments and the support that FedBE's and SWAG's equations give them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.core.weights import mean
from fedfuse.experiment.assembly import build
from fedfuse.federation.events import EventLog
from fedfuse.parts.fuse.members import (
    AverageTeacher,
    ClientTeachers,
    DirichletTeachers,
    GaussianTeachers,
    RoundModels,
    SwagTeachers,
)
from tests.helpers import (
    TinyNorm,
    make_bank,
    make_source,
    make_update,
    make_view,
    make_weights,
    tiny_config,
    tiny_method,
)  # fmt: skip

BANK = make_bank(norm=TinyNorm(), mlp=TinyNorm(width=3))
SIZES = [10, 30, 60]


def varied(prototype, seed):
    """Weights in which no two models share a number, also not the scales of the norm layers."""
    weights = make_weights(BANK, prototype, seed)
    noise = torch.randn(weights.parameters.shape, generator=torch.Generator().manual_seed(seed))
    return weights.with_parameters(weights.parameters + noise)


def models(prototypes=("norm",), key=0):
    updates = [
        make_update(varied(p, 10 * i + j), client=10 * i + j, examples=SIZES[j], prototype=p)
        for i, p in enumerate(prototypes)
        for j in range(3)
    ]
    merged = {p: mean([u.weights for u in updates if u.prototype == p], [float(s) for s in SIZES]) for p in prototypes}
    return RoundModels(updates, merged, {p: make_weights(BANK, p, 99) for p in prototypes}, Key(key))


def stacked(updates):
    return np.stack([u.weights.parameters.double().numpy() for u in updates])


def test_clients_and_average_are_just_that():
    group = models(("norm", "mlp"))
    clients = ClientTeachers().gather(group)
    assert [(t.prototype, t.weights) for t in clients] == [(u.prototype, u.weights) for u in group.updates]
    averages = AverageTeacher().gather(group)
    assert {t.prototype: t.weights for t in averages} == dict(group.merged)


class TestGaussian:
    def test_samples_have_the_weighted_mean_and_variance_of_the_clients(self):
        group = models()
        samples = np.stack([t.weights.parameters.numpy() for t in GaussianTeachers(number=4000).gather(group)])
        clients, shares = stacked(group.updates), np.array(SIZES) / sum(SIZES)
        centre = (shares[:, None] * clients).sum(0)
        deviation = np.sqrt((shares[:, None] * (clients - centre) ** 2).sum(0))
        assert np.abs((samples.mean(0) - centre) / deviation).max() < 5 / np.sqrt(4000)
        assert samples.std(0) == pytest.approx(deviation, rel=0.08)

    def test_coordinates_vary_independently(self):
        samples = np.stack([t.weights.parameters.numpy() for t in GaussianTeachers(number=3000).gather(models())])
        correlation = np.corrcoef(samples[:, :8].T) - np.eye(8)
        assert np.abs(correlation).max() < 0.1

    def test_scale_0_is_the_average(self):
        group = models()
        (sample,) = GaussianTeachers(number=1, scale=0.0).gather(group)
        assert torch.equal(sample.weights.flat, group.merged["norm"].flat)

    def test_statistics_are_the_averages(self):
        group = models()
        for teacher in GaussianTeachers(number=3).gather(group):
            assert torch.equal(teacher.weights.buffers, group.merged["norm"].buffers)

    def test_as_coded_against_a_loop_over_tensors(self):
        """Moments of w_prev + (mean(u) + .1 std(u) eps) * mean length, tensor by tensor."""
        group = models()
        teachers = GaussianTeachers(number=3000, form="as_coded").gather(group)
        previous = group.previous["norm"]
        ends = np.cumsum([previous[name].numel() for name, _ in previous.layout.parameters])
        drawn = np.split(np.stack([t.weights.parameters.numpy() for t in teachers]), ends[:-1], axis=1)
        for (name, _), samples in zip(previous.layout.parameters, drawn, strict=True):
            moves = [(u.weights[name] - previous[name]).double().numpy().ravel() for u in group.updates]
            lengths = [np.sqrt((m**2).sum()) for m in moves]
            units = np.stack([m / n for m, n in zip(moves, lengths, strict=True)])
            expected = previous[name].double().numpy().ravel() + units.mean(0) * np.mean(lengths)
            deviation = 0.1 * np.sqrt(np.maximum(units.var(0), 1e-5)) * np.mean(lengths)
            assert np.abs((samples.mean(0) - expected) / deviation).max() < 5 / np.sqrt(3000)
            assert samples.std(0) == pytest.approx(deviation, rel=0.1)


class TestDirichlet:
    def test_samples_lie_in_the_simplex_of_the_clients_with_the_right_mean(self):
        group = models()
        samples = np.stack(
            [t.weights.parameters.double().numpy() for t in DirichletTeachers(number=2000, alpha=0.7).gather(group)]
        )
        clients = stacked(group.updates)
        coefficients = np.linalg.lstsq(clients.T, samples.T, rcond=None)[0].T
        assert coefficients.min() > -1e-4
        assert coefficients.sum(1) == pytest.approx(np.ones(2000), abs=1e-4)
        gamma = np.random.default_rng(0).dirichlet([0.7] * 3, size=200_000) * np.array(SIZES)
        expected = (gamma / gamma.sum(1, keepdims=True)).mean(0)
        assert coefficients.mean(0) == pytest.approx(expected, abs=0.03)

    def test_without_sizes_everybody_weighs_the_same(self):
        group = models()
        teachers = DirichletTeachers(number=3000, by_examples=False).gather(group)
        samples = np.stack([t.weights.parameters.double().numpy() for t in teachers])
        coefficients = np.linalg.lstsq(stacked(group.updates).T, samples.T, rcond=None)[0].T
        assert coefficients.mean(0) == pytest.approx([1 / 3] * 3, abs=0.02)
        assert coefficients.var(0) == pytest.approx([2 / 36] * 3, rel=0.1)  # variance of Dir(1, 1, 1)


class TestSwag:
    NUMBER = 20_000

    def samples(self, group, **settings):
        teachers = SwagTeachers(number=self.NUMBER, **settings).gather(group)
        return np.stack([t.weights.parameters.double().numpy() for t in teachers])

    def test_samples_have_the_mean_and_the_covariance_of_the_paper(self):
        """Cov = 1/2 diag(population variance) + 1/2 (1/(K-1)) D D^T, by hand."""
        group = models()
        samples, clients = self.samples(group), stacked(group.updates)
        deviations = clients - clients.mean(0)
        expected = np.diag((deviations**2).mean(0)) / 2 + deviations.T @ deviations / (2 * (3 - 1))
        scale = np.sqrt(np.diag(expected))
        assert np.abs((samples.mean(0) - clients.mean(0)) / scale).max() < 5 / np.sqrt(self.NUMBER)
        difference = (np.cov(samples.T) - expected) / np.outer(scale, scale)
        assert np.abs(difference).max() < 8 / np.sqrt(self.NUMBER)

    def test_at_most_rank_clients_are_in_the_low_rank_part(self):
        group = models()
        samples, clients = self.samples(group, rank=2), stacked(group.updates)
        deviations = clients - clients.mean(0)
        covariance, diagonal = np.cov(samples.T), np.diag((deviations**2).mean(0)) / 2
        scale = np.sqrt(np.diag(covariance))
        errors = []
        for left_out in range(3):
            two = np.delete(deviations, left_out, axis=0)
            expected = diagonal + two.T @ two / (2 * (2 - 1))
            errors.append(np.abs((covariance - expected) / np.outer(scale, scale)).max())
        smallest, second, _ = sorted(errors)
        assert smallest < 8 / np.sqrt(self.NUMBER) < second

    def test_scale_multiplies_the_deviation(self):
        group = models()
        one, half = (SwagTeachers(number=1, scale=scale).gather(group)[0].weights for scale in (1.0, 0.5))
        centre = mean([u.weights for u in group.updates], [1.0] * 3)
        torch.testing.assert_close(half.parameters - centre.parameters, (one.parameters - centre.parameters) / 2)
        (still,) = SwagTeachers(number=1, scale=0.0).gather(group)
        assert still.weights.equals(centre)

    def test_statistics_are_the_means(self):
        group = models()
        centre = mean([u.weights for u in group.updates], [1.0] * 3)
        for teacher in SwagTeachers(number=3).gather(group):
            assert torch.equal(teacher.weights.buffers, centre.buffers)


@pytest.mark.parametrize("members", [GaussianTeachers(number=2), DirichletTeachers(number=2), SwagTeachers(number=2)])
def test_samples_stay_inside_their_prototype_and_follow_the_key(members):
    one, again, other = (members.gather(models(("norm", "mlp"), key)) for key in (0, 0, 1))
    assert [t.prototype for t in one] == ["norm", "norm", "mlp", "mlp"]
    assert all(a.weights.equals(b.weights) for a, b in zip(one, again, strict=True))
    assert not any(a.weights.equals(b.weights) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("members", [GaussianTeachers(number=1), DirichletTeachers(number=1), SwagTeachers(number=1)])
def test_one_client_leaves_nothing_to_sample(members):
    group = models()
    alone = RoundModels(group.updates[:1], {}, group.previous, group.key)
    (sample,) = members.gather(alone)
    assert sample.weights.equals(group.updates[0].weights)


class TestOwnStatistics:
    SAMPLED = (GaussianTeachers(number=3), DirichletTeachers(number=3), SwagTeachers(number=3))

    @pytest.mark.parametrize("members", SAMPLED, ids=lambda members: members.kind)
    def test_samples_can_have_statistics_of_their_own(self, members):
        """Everything but the statistics is as before, and those are what a pass over the source gives."""
        source = make_source(40)
        group = replace(models(), reestimated=make_view(BANK, source=source).reestimated)
        plain = members.gather(group)
        own = members.model_copy(update={"batch_norm": "reestimate"}).gather(group)
        for before, after in zip(plain, own, strict=True):
            assert torch.equal(before.weights.parameters, after.weights.parameters)
            assert not torch.equal(before.weights.buffers, after.weights.buffers)
            model = BANK.lend("norm", before.weights).train()
            first = model.layers[1](source.raw)  # the linear layer in front of the norm
            mean_name, variance_name = (name for name, _ in after.weights.layout.buffers)
            torch.testing.assert_close(after.weights[mean_name], first.mean(dim=0).detach(), rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(after.weights[variance_name], first.var(dim=0).detach(), rtol=1e-4, atol=1e-5)

    def test_clients_and_the_average_keep_theirs(self):
        assert not ClientTeachers().reestimates
        assert not AverageTeacher().reestimates

    def test_without_inputs_it_is_refused_before_round_1(self):
        teachers = [{"kind": "clients"}, {"kind": "swag", "batch_norm": "reestimate"}]
        fuse = {"kind": "ensemble_only", "teachers": teachers}
        with pytest.raises(ConfigError, match="re-estimate BatchNorm statistics on public inputs, but this method has"):
            build(tiny_config(tiny_method("1-ensemble", fuse=fuse)), EventLog())
