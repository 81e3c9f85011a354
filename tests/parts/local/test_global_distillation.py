"""FedGKD minimises F(w) + gamma/2 KL(h(wbar) || h(w)): checked against autograd on that very formula."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.engines import LocalEngine
from fedfuse.methods import METHODS
from fedfuse.models import Mlp
from fedfuse.parts.base import CheckContext
from fedfuse.parts.local import GlobalDistillation, Plain
from fedfuse.parts.local.loop import train
from fedfuse.runtime.batches import epoch_batches
from fedfuse.runtime.optimizers import Sgd
from fedfuse.runtime.training import TrainingSettings
from tests.helpers import (
    TinyNorm,
    make_bank,
    make_client,
    make_examples,
    make_federation,
    make_recipe,
    make_weights,
)

KEY = Key(3)
START, TEACHER = 1, 2
"""Seeds of the received weights and of the teacher's."""


def trained(objective, number=2, epochs=3, extras=None):
    bank = make_bank(norm=TinyNorm(dropout=0.3))
    weights = make_weights(bank, "norm", START)
    if extras is None:
        extras = {"teacher": make_weights(bank, "norm", TEACHER).flat}
    training = TrainingSettings(epochs=epochs, batch_size=6, optimizer=Sgd(learning_rate=0.2))
    task = Task(number, 0, "norm", weights, extras)
    client = make_client(task, bank.lend("norm", weights), make_examples(18), training, 0.2, {}, bank, KEY)
    train(client, objective.begin(client))
    return Weights.of(client.model)


def by_hand(distance, coefficient, teacher=TEACHER, epochs=3):
    bank, examples = make_bank(norm=TinyNorm(dropout=0.3)), make_examples(18)
    student = bank.lend("norm", make_weights(bank, "norm", START)).train()
    asked = bank.lend("norm", make_weights(bank, "norm", teacher), "by hand").eval()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.2)
    with KEY.child("dropout").default_generator():
        for epoch in range(epochs):
            for where in epoch_batches(18, 6, KEY.child("batches", epoch)):
                inputs, labels = examples.inputs[where], examples.labels[where]
                target = asked(inputs).detach()
                logits = student(inputs)
                loss = F.cross_entropy(logits, labels) + coefficient * distance(target, logits)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    return Weights.of(student)


def divergence(temperature):
    """KL as its definition says: sum of p (log p - log q), mean over the batch."""

    def distance(target, logits):
        p, q = (target / temperature).softmax(dim=1), (logits / temperature).softmax(dim=1)
        return temperature**2 * (p * (p.log() - q.log())).sum(dim=1).mean()

    return distance


def squares(target, logits):
    return (logits - target).pow(2).mean()


def near(one, other):
    return torch.allclose(one.flat, other.flat, rtol=1e-4, atol=1e-5)


class TestStep:
    @pytest.mark.parametrize("coefficient", [0.1, 2.0])
    @pytest.mark.parametrize("temperature", [1.0, 3.0])
    def test_equals_autograd_on_the_written_loss(self, coefficient, temperature):
        result = trained(GlobalDistillation(coefficient=coefficient, temperature=temperature))
        assert near(result, by_hand(divergence(temperature), coefficient))
        assert not near(result, by_hand(divergence(temperature), 0.5 * coefficient))

    def test_temperature_matters(self):
        results = [trained(GlobalDistillation(coefficient=2.0, temperature=value)) for value in (1.0, 3.0)]
        assert not near(*results)

    def test_squared_error_of_the_logits(self):
        result = trained(GlobalDistillation(coefficient=0.5, loss="mse"))
        assert near(result, by_hand(squares, 0.5))
        assert not near(result, trained(GlobalDistillation(coefficient=0.5)))

    def test_a_buffer_of_one_is_taught_by_the_received_weights(self):
        result = trained(GlobalDistillation(buffer=1, coefficient=2.0), extras={"teacher": torch.empty(0)})
        assert near(result, by_hand(divergence(1.0), 2.0, teacher=START))
        assert not near(result, trained(Plain()))

    def test_coefficient_zero_is_plain_bit_for_bit(self):
        assert trained(GlobalDistillation(coefficient=0.0)).equals(trained(Plain()))

    @pytest.mark.parametrize("number", [1, 2])
    @pytest.mark.parametrize("buffer", [1, 3])
    def test_without_a_teacher_it_is_plain_bit_for_bit(self, number, buffer):
        objective = GlobalDistillation(coefficient=2.0, buffer=buffer)
        assert trained(objective, number=number, extras={}).equals(trained(Plain()))

    def test_the_teacher_stays_as_it_is(self):
        bank = make_bank(norm=TinyNorm())
        own, other = make_weights(bank, "norm", START), make_weights(bank, "norm", TEACHER)
        task = Task(2, 0, "norm", own, {"teacher": other.flat})
        training = TrainingSettings(epochs=2, batch_size=6)
        client = make_client(task, bank.lend("norm", own), make_examples(18), training, 0.1, {}, bank, KEY)
        hooks = GlobalDistillation(coefficient=2.0).begin(client)
        train(client, hooks)
        (teacher,) = hooks.teachers
        assert Weights.of(teacher.network).equals(other)
        assert all(parameter.grad is None for parameter in teacher.network.parameters())


TWO = {"norm": TinyNorm(), "wide": TinyNorm(width=9)}


def played(objective, rounds, bank=None, **settings):
    """The snapshots before each round and after the last, and the tasks of every round."""
    rounds_of_tasks = []
    federation = make_federation(bank or make_bank(**TWO), make_recipe(local=objective), rounds=rounds, **settings)

    class Listening(LocalEngine):
        def train(self, tasks, states):
            rounds_of_tasks.append(list(tasks))
            return super().train(tasks, states)

    federation = replace(federation, engine=Listening(federation.engine.clients))
    snapshots = [federation.start()]
    for _ in range(rounds):
        snapshots.append(federation.advance(snapshots[-1]))
    return snapshots, rounds_of_tasks


def finals(snapshots):
    return snapshots[-1].server.weights


def buffered(snapshots, number, prototype, buffer, initial):
    """The models that teach in a round, oldest first: of those that were broadcast before it and in it, the initial
    one left out unless it counts as one."""
    broadcast = [snapshot.server.weights[prototype].flat for snapshot in snapshots[:number]]
    first = 0 if initial else next((i for i, w in enumerate(broadcast) if not torch.equal(w, broadcast[0])), number)
    return broadcast[first:][-buffer:]


def assert_taught_by(task, models):
    if not models:
        assert not task.extras
    elif len(models) == 1:
        assert len(task.extras["local/teacher"]) == 0, "the received weights teach, and do not travel twice"
        assert torch.equal(task.weights.flat, models[0])
    else:
        expected = torch.stack(models).double().mean(dim=0).float()
        assert torch.allclose(task.extras["local/teacher"], expected, rtol=1e-6, atol=1e-7)


class TestRounds:
    @pytest.mark.parametrize("initial", [False, True])
    @pytest.mark.parametrize("buffer", [1, 2, 3, 9])
    def test_the_teacher_is_the_mean_of_the_latest_global_models(self, buffer, initial):
        snapshots, tasks = played(GlobalDistillation(buffer=buffer, buffer_initial=initial), 5)
        assert all(not task.extras for task in tasks[0])
        for number in range(2, 6):
            for task in tasks[number - 1]:
                models = buffered(snapshots, number, task.prototype, buffer, initial)
                assert len(models) == min(buffer, number if initial else number - 1)
                assert_taught_by(task, models)

    @pytest.mark.parametrize(("initial", "expected"), [(False, [0, 1, 2, 2]), (True, [1, 2, 2, 2])])
    def test_the_server_remembers_what_it_needs_and_no_more(self, initial, expected):
        snapshots, _ = played(GlobalDistillation(buffer=3, buffer_initial=initial), 4)
        rows = [snapshot.server.memory["local"]["models/norm"].shape[0] for snapshot in snapshots[1:]]
        assert rows == expected
        for snapshot in played(GlobalDistillation(buffer=1, buffer_initial=initial), 3)[0][1:]:
            assert all(not tensor.numel() for tensor in snapshot.server.memory["local"].values())

    @pytest.mark.parametrize("initial", [False, True])
    @pytest.mark.parametrize("buffer", [1, 3])
    def test_a_prototype_without_clients_is_buffered_again_once_it_was_trained(self, buffer, initial):
        objective = GlobalDistillation(buffer=buffer, buffer_initial=initial)
        snapshots, tasks = played(objective, 8, clients_per_round=1)
        absences, untrained = 0, 0
        for number, (task,) in enumerate(tasks[1:], start=2):
            models = buffered(snapshots, number, task.prototype, buffer, initial)
            assert_taught_by(task, models)
            absences += any(torch.equal(one, other) for one, other in pairwise(models))
            untrained += not models
        assert absences or buffer == 1
        assert bool(untrained) != initial, "only the initial network was there to teach"

    def test_the_initial_network_taught_and_does_so_no_longer(self):
        """Round 2 is the first that it could teach in, and with M = 1 it never did."""
        ends = {
            (initial, buffer, rounds): finals(
                played(GlobalDistillation(buffer=buffer, buffer_initial=initial, coefficient=2.0), rounds)[0]
            )["norm"]
            for initial in (False, True)
            for buffer in (1, 3)
            for rounds in (1, 2)
        }
        assert ends[False, 3, 1].equals(ends[True, 3, 1])
        assert not ends[False, 3, 2].equals(ends[True, 3, 2])
        assert ends[False, 3, 2].equals(ends[False, 1, 2])
        assert ends[False, 1, 2].equals(ends[True, 1, 2])

    @pytest.mark.parametrize("buffer", [1, 3])
    def test_coefficient_zero_is_fedavg_bit_for_bit(self, buffer):
        plain = finals(played(Plain(), 4)[0])
        mine = finals(played(GlobalDistillation(buffer=buffer, coefficient=0.0), 4)[0])
        other = finals(played(GlobalDistillation(buffer=buffer), 4)[0])
        assert all(mine[prototype].equals(plain[prototype]) for prototype in plain)
        assert not any(other[prototype].equals(plain[prototype]) for prototype in plain)

    @pytest.mark.parametrize("buffer", [1, 3])
    def test_round_one_is_fedavg_bit_for_bit(self, buffer):
        plain = finals(played(Plain(), 1)[0])
        mine = finals(played(GlobalDistillation(buffer=buffer, coefficient=5.0), 1)[0])
        assert all(mine[prototype].equals(plain[prototype]) for prototype in plain)

    def test_bytes(self):
        bank = make_bank(norm=TinyNorm())
        model = 4 * bank.layout("norm").size
        for (buffer, initial), down in {
            (1, False): [1, 1, 1, 1],
            (1, True): [1, 1, 1, 1],
            (3, False): [1, 1, 2, 2],
            (3, True): [1, 2, 2, 2],
        }.items():
            snapshots, tasks = played(GlobalDistillation(buffer=buffer, buffer_initial=initial), 4, bank)
            assert [{task.nbytes for task in each} for each in tasks] == [{models * model} for models in down]
            history = snapshots[-1].server.history
            assert [record.bytes_down for record in history] == [4 * models * model for models in down]
            assert [record.bytes_up for record in history] == [4 * model] * 4


class TestProjectionHead:
    def context(self, **architectures):
        return CheckContext(make_bank(**architectures), Sgd(), has_validation=False)

    def test_plus_refuses_a_model_without_a_head_and_says_the_key(self):
        models = {"good": Mlp(hidden=(4,), projection_head=3), "bare": Mlp(hidden=(4,))}
        with pytest.raises(ConfigError, match=r"models\.bare\.projection_head"):
            METHODS["fedgkd-plus"].recipe.local.check(self.context(**models))

    def test_plus_takes_models_with_heads(self):
        METHODS["fedgkd-plus"].recipe.local.check(self.context(good=Mlp(hidden=(4,), projection_head=3)))

    def test_plus_is_fedgkd_but_for_that(self):
        plus, plain = METHODS["fedgkd-plus"].recipe, METHODS["fedgkd"].recipe
        assert plus.local.model_copy(update={"needs_projection_head": False}) == plain.local
        assert plus.merge == plain.merge
        plain.local.check(self.context(bare=Mlp(hidden=(4,))))
