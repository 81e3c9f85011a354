"""FedGKD-VOTE: one KL term for each of the latest global models, weighted by softmax(-loss / beta)."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.parts.base import CheckContext
from fedfuse.parts.local import GlobalDistillation, Plain, VotingDistillation
from fedfuse.parts.local.loop import train
from fedfuse.runtime.batches import epoch_batches
from fedfuse.runtime.evaluate import Evaluator
from fedfuse.runtime.optimizers import Sgd
from fedfuse.runtime.training import TrainingSettings
from tests.helpers import TinyNorm, make_bank, make_client, make_evaluator, make_examples, make_weights
from tests.parts.local.test_global_distillation import buffered, divergence, finals, near, played

KEY = Key(3)
VALIDATION = 20


def votes(losses, scale, beta):
    weights = [math.exp(-loss / beta) for loss in losses]
    return [scale * weight / sum(weights) for weight in weights]


def trained(objective, coefficients, seeds=(1, 2, 3)):
    """A client of round 4 that received the first seed's weights and the other ones' as past models."""
    bank = make_bank(norm=TinyNorm())
    own, *past = (make_weights(bank, "norm", seed) for seed in seeds)
    extras = {"models": torch.stack([w.flat for w in past]), "coefficients": torch.tensor(coefficients)}
    training = TrainingSettings(epochs=3, batch_size=6, optimizer=Sgd(learning_rate=0.2))
    client = make_client(
        Task(4, 0, "norm", own, extras), bank.lend("norm", own), make_examples(18), training, 0.2, {}, bank, KEY
    )
    train(client, objective.begin(client))
    return Weights.of(client.model)


def by_hand(coefficients, seeds=(1, 2, 3)):
    bank, examples = make_bank(norm=TinyNorm()), make_examples(18)
    student = bank.lend("norm", make_weights(bank, "norm", seeds[0])).train()
    teachers = [bank.lend("norm", make_weights(bank, "norm", seed), f"by hand {seed}").eval() for seed in seeds]
    optimizer = torch.optim.SGD(student.parameters(), lr=0.2)
    for epoch in range(3):
        for where in epoch_batches(18, 6, KEY.child("batches", epoch)):
            inputs = examples.inputs[where]
            logits = student(inputs)
            loss = F.cross_entropy(logits, examples.labels[where])
            for coefficient, teacher in zip(coefficients, teachers, strict=True):
                loss = loss + coefficient * divergence(1.0)(teacher(inputs).detach(), logits)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return Weights.of(student)


def test_equals_autograd_on_the_written_loss():
    result = trained(VotingDistillation(), [0.2, 1.0, 0.5])
    assert near(result, by_hand([0.2, 1.0, 0.5]))
    for other in ([0.2, 0.5, 1.0], [0.0, 0.0, 0.0], [0.2, 1.0, 0.0]):
        assert not near(result, by_hand(other)), "every term has a gradient"


class TestVotes:
    @pytest.mark.parametrize(("beta", "expected"), [(None, 1 / 4), (0.7, 0.7)])
    def test_equal_a_softmax_by_hand_and_sum_to_lambda(self, beta, expected):
        losses = [0.9, 1.1, 0.4]
        result = VotingDistillation(buffer=4, coefficient=0.3, vote_temperature=beta).votes(torch.tensor(losses))
        assert result.tolist() == pytest.approx(votes(losses, 0.3, expected), rel=1e-5)
        assert float(result.sum()) == pytest.approx(0.3)
        assert result.dtype == torch.float32

    def test_one_model_has_all(self):
        assert torch.equal(VotingDistillation().votes(torch.tensor([9.0])), torch.tensor([0.1]))


def loss_of(bank, prototype, weights):
    evaluator = make_evaluator(make_examples(VALIDATION, seed=1001))
    return evaluator.score(bank.lend(prototype, weights)).loss


class TestRounds:
    @pytest.mark.parametrize("initial", [False, True])
    @pytest.mark.parametrize("buffer", [1, 2, 3, 9])
    @pytest.mark.parametrize("settings", [{}, {"clients_per_round": 1}])
    def test_what_travels_is_the_latest_models_and_their_votes(self, buffer, settings, initial):
        bank = make_bank(norm=TinyNorm(), wide=TinyNorm(width=9))
        objective = VotingDistillation(buffer=buffer, buffer_initial=initial)
        snapshots, tasks = played(objective, 5, bank, validation=VALIDATION, **settings)
        assert all(not task.extras for task in tasks[0])
        untrained = 0
        for number in range(2, 6):
            for task in tasks[number - 1]:
                newest, *past = buffered(snapshots, number, task.prototype, buffer, initial)[::-1] or [None]
                if newest is None:
                    untrained += 1
                    assert not task.extras
                    continue
                assert torch.equal(newest, task.weights.flat)
                sent = task.extras.get("local/models", ())
                assert [model.tolist() for model in sent] == [model.tolist() for model in past]
                seen = [Weights(flat, task.weights.layout) for flat in (newest, *past)]
                expected = votes([loss_of(bank, task.prototype, weights) for weights in seen], 0.1, 1 / buffer)
                assert task.extras["local/coefficients"].tolist() == pytest.approx(expected, rel=1e-5)
        assert bool(untrained) == (bool(settings) and not initial)

    @pytest.mark.parametrize("initial", [False, True])
    def test_every_model_that_teaches_is_scored_once(self, monkeypatch, initial):
        scored = []
        score = Evaluator.score

        def counted(self, model, *options, **more):
            if len(self) == VALIDATION:
                scored.append(Weights.of(model).sha256())
            return score(self, model, *options, **more)

        monkeypatch.setattr(Evaluator, "score", counted)
        objective = VotingDistillation(buffer=4, buffer_initial=initial)
        played(objective, 5, make_bank(norm=TinyNorm()), validation=VALIDATION)
        assert len(scored) == len(set(scored)) == 5 + initial, "one for each round, and the initial one if it teaches"

    def test_a_buffer_of_one_is_fedgkd_with_a_buffer_of_one_bit_for_bit(self):
        mine, other = (
            finals(played(kind(buffer=1, coefficient=0.7), 4, validation=VALIDATION)[0])
            for kind in (VotingDistillation, GlobalDistillation)
        )
        assert all(mine[prototype].equals(other[prototype]) for prototype in other)

    def test_coefficient_zero_is_fedavg_bit_for_bit(self):
        plain, mine, other = (
            finals(played(objective, 4, validation=VALIDATION)[0])
            for objective in (Plain(), VotingDistillation(coefficient=0.0), VotingDistillation())
        )
        assert all(mine[prototype].equals(plain[prototype]) for prototype in plain)
        assert not any(other[prototype].equals(plain[prototype]) for prototype in plain)

    def test_round_one_is_fedavg_bit_for_bit(self):
        plain, mine = (
            finals(played(objective, 1, validation=VALIDATION)[0])
            for objective in (Plain(), VotingDistillation(coefficient=5.0))
        )
        assert all(mine[prototype].equals(plain[prototype]) for prototype in plain)

    @pytest.mark.parametrize("initial", [False, True])
    @pytest.mark.parametrize("buffer", [1, 3])
    def test_bytes(self, buffer, initial):
        bank = make_bank(norm=TinyNorm())
        model = 4 * bank.layout("norm").size
        objective = VotingDistillation(buffer=buffer, buffer_initial=initial)
        _, tasks = played(objective, 5, bank, validation=VALIDATION)
        teachers = [min(buffer, t if initial else t - 1) for t in range(2, 6)]
        expected = [model] + [number * model + 4 * number for number in teachers]
        assert [{task.nbytes for task in each} for each in tasks] == [{size} for size in expected]


def test_without_validation_examples_it_is_refused():
    context = CheckContext(make_bank(), Sgd(), has_validation=False)
    with pytest.raises(ConfigError, match=r"data\.validation"):
        VotingDistillation().check(context)
    VotingDistillation().check(CheckContext(make_bank(), Sgd(), has_validation=True))
