"""SCAFFOLD against the paper's own lines written out in plain torch, and the laws of its control variates."""

from __future__ import annotations

import dataclasses
from typing import Literal

import pytest
import torch
import torch.nn.functional as F

from fedfuse.core.errors import ConfigError
from fedfuse.core.weights import Weights
from fedfuse.engines import LocalEngine
from fedfuse.experiment.run import Experiment
from fedfuse.models import Mlp
from fedfuse.parts.base import CheckContext
from fedfuse.parts.local import Plain
from fedfuse.parts.local.scaffold import ControlVariates
from fedfuse.parts.merge import Mean
from fedfuse.parts.screen import Screen, Screened
from fedfuse.runtime.batches import epoch_batches
from fedfuse.runtime.optimizers import Adam, Sgd
from fedfuse.runtime.training import Decay, TrainingSettings
from tests.helpers import TinyNorm, make_bank, make_examples, make_federation, make_recipe, tiny_config

SHORT = TrainingSettings(epochs=1, batch_size=4)
UNIFORM = Mean(weighting="uniform")
TWO = {"a": TinyNorm(), "b": Mlp(hidden=(5,))}


def federation_of(local=None, merge=UNIFORM, training=SHORT, architectures=None, **more):
    recipe = make_recipe(local=local or ControlVariates(), merge=merge, screen=more.pop("screen", ()))
    bank = make_bank(**(architectures or {"norm": TinyNorm()}))
    bend = more.pop("bend", None)
    federation = make_federation(bank=bank, recipe=recipe, **more)
    clients = dataclasses.replace(federation.engine.clients, training=training)
    return dataclasses.replace(federation, engine=Bent(clients, bend) if bend else LocalEngine(clients))


class Bent(LocalEngine):
    """An engine whose answers are changed one by one."""

    def __init__(self, clients, change):
        super().__init__(clients)
        self.change = change

    def train(self, tasks, states):
        return [(self.change(update), state) for update, state in super().train(tasks, states)]


def played(federation, rounds):
    snapshot = federation.start()
    for _ in range(rounds):
        snapshot = federation.advance(snapshot)
    return snapshot


def client_by_hand(weights, examples, key, training, rate, server, own):
    """One client's lines of Algorithm 1, option II. Returns y and c_i+."""
    model = make_bank(norm=TinyNorm()).lend("norm", weights).train()
    momentum, velocity, steps = training.optimizer.momentum, 0.0, 0
    for epoch in range(training.epochs):
        for where in epoch_batches(len(examples), training.batch_size, key.child("batches", epoch)):
            loss = F.cross_entropy(model(examples.inputs[where]), examples.labels[where])
            gradients = torch.autograd.grad(loss, list(model.parameters()))
            step = torch.cat([g.reshape(-1) for g in gradients]) - own + server
            if training.clip_norm is not None:
                step = step * min(1.0, training.clip_norm / float(step.norm()))
            velocity = momentum * velocity + step
            flat = Weights.of(model)
            flat.with_parameters(flat.parameters - rate * velocity).load_into(model)
            steps += 1
    moved = sum((1 - momentum**k) / (1 - momentum) for k in range(1, steps + 1))
    result = Weights.of(model)
    return result, own - server + (weights.parameters - result.parameters) / (moved * rate)


def by_hand(federation, history, training, rates, server_rate):
    """The server's lines of Algorithm 1, for the clients that were sampled."""
    weights = federation.start().server.weights["norm"]
    server = torch.zeros_like(weights.parameters)
    own = [torch.zeros_like(server) for _ in range(federation.clients)]
    for record, rate in zip(history, rates, strict=True):
        results, changes = [], []
        for client in record.clients:
            key = federation.key.child("round", record.round, "client", client)
            examples = make_examples(8 + 3 * client, seed=client)
            result, new = client_by_hand(weights, examples, key, training, rate, server, own[client])
            results.append(result)
            changes.append(new - own[client])
            own[client] = new
        average = torch.stack([r.flat for r in results]).mean(0)
        stepped = weights.flat + server_rate * (average - weights.flat)
        weights = Weights(average, weights.layout).with_parameters(stepped[: weights.layout.parameter_count])
        server = server + torch.stack(changes).sum(0) / federation.clients
    return weights, server, own


@pytest.mark.parametrize("clients_per_round", [2, 4])
@pytest.mark.parametrize(
    ("more", "momentum", "server_rate"),
    [
        ({}, 0.0, 1.0),
        ({"epochs": 3}, 0.0, 0.7),
        ({"epochs": 2, "clip_norm": 0.4}, 0.0, 1.0),
        ({"epochs": 2}, 0.9, 1.5),
    ],
    ids=["one epoch", "three epochs", "clipping", "momentum"],
)
def test_is_the_papers_algorithm(more, momentum, server_rate, clients_per_round):
    """Different sizes, so different numbers of steps; a learning rate that changes between visits."""
    training = TrainingSettings(
        **{"batch_size": 4, **more},
        optimizer=Sgd(learning_rate=0.1, momentum=momentum),
        decay=(Decay(after=0.2, factor=0.5),),
    )
    merge = Mean(weighting="uniform", server_rate=server_rate)
    federation = federation_of(merge=merge, training=training, clients_per_round=clients_per_round)
    after = played(federation, 4)
    rates = [0.1, 0.1, 0.05, 0.05]
    weights, server, own = by_hand(federation, after.server.history, training, rates, server_rate)
    close = {"rtol": 1e-3, "atol": 1e-5}
    torch.testing.assert_close(after.server.weights["norm"].flat, weights.flat, **close)
    torch.testing.assert_close(after.server.memory["local"]["norm"], server, **close)
    assert {c for record in after.server.history for c in record.clients} == set(after.clients)
    for client, state in after.clients.items():
        torch.testing.assert_close(state["local/control"], own[client], **close)


class Watching(ControlVariates):
    """Keeps the gradients of a visit before they are corrected."""

    kind: Literal["watching"] = "watching"

    def begin(self, client):
        hooks = super().begin(client)
        correct, seen = hooks.on_gradient, []

        def on_gradient():
            seen.append(torch.cat([p.grad.reshape(-1) for p in client.model.parameters()]))
            correct()

        hooks.on_gradient = on_gradient
        SEEN[client.task.round, client.task.client] = seen
        return hooks


SEEN: dict[tuple[int, int], list[torch.Tensor]] = {}


@pytest.mark.parametrize("schedule", ["constant", "linear"])
@pytest.mark.parametrize("decay", [1.0, 0.8])
@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_a_clients_control_is_the_mean_of_the_gradients_it_met(momentum, decay, schedule):
    """Each gradient counts as much as it moved the weights, which without momentum is equally."""
    SEEN.clear()
    optimizer = Sgd(learning_rate=0.05, momentum=momentum)
    training = TrainingSettings(epochs=2, batch_size=4, optimizer=optimizer, step_decay=decay, schedule=schedule)
    after = played(federation_of(Watching(), training=training), 6)
    for client, state in after.clients.items():
        gradients = SEEN[6, client]
        steps = len(gradients)
        rates = [decay**i * (1 - i / steps if schedule == "linear" else 1) for i in range(steps)]
        shares = [sum(rates[i + k] * momentum**k for k in range(steps - i)) for i in range(steps)]
        expected = sum(s * g for s, g in zip(shares, gradients, strict=True)) / sum(shares)
        torch.testing.assert_close(state["local/control"], expected, rtol=1e-3, atol=1e-4)


class TestLaws:
    @pytest.mark.parametrize("architectures", [None, TWO], ids=["one model", "two models"])
    @pytest.mark.parametrize("clients_per_round", [1, 3, 5])
    def test_the_servers_control_is_the_mean_of_all_clients(self, architectures, clients_per_round):
        federation = federation_of(
            architectures=architectures, clients=5, clients_per_round=clients_per_round, moves="taken"
        )
        after = played(federation, 6)
        prototypes = federation.prototypes
        for prototype, control in after.server.memory["local"].items():
            total = torch.zeros_like(control)
            for client, state in after.clients.items():
                if prototypes[client] == prototype:
                    total += state["local/control"]
            assert control.abs().max() > 0
            torch.testing.assert_close(control, total / prototypes.count(prototype), rtol=1e-4, atol=1e-6)

    @pytest.mark.parametrize("momentum", [0.0, 0.9])
    def test_one_client_is_plain_bit_for_bit(self, momentum):
        training = TrainingSettings(epochs=2, batch_size=4, optimizer=Sgd(momentum=momentum, weight_decay=1e-3))
        one = played(federation_of(training=training, clients=1), 4)
        plain = played(federation_of(Plain(), training=training, clients=1), 4)
        assert one.server.weights["norm"].equals(plain.server.weights["norm"])
        assert torch.equal(one.server.memory["local"]["norm"], one.clients[0]["local/control"])
        assert one.clients[0]["local/control"].abs().max() > 0

    def test_the_first_round_is_plain_bit_for_bit_and_the_second_is_not(self):
        for rounds, same in ((1, True), (2, False)):
            corrected, plain = played(federation_of(), rounds), played(federation_of(Plain()), rounds)
            assert corrected.server.weights["norm"].equals(plain.server.weights["norm"]) == same

    def test_with_one_step_a_round_the_corrections_cancel(self):
        """mean_i (g_i - c_i + c) = mean_i g_i, because everybody takes the same single step with c = mean_i c_i."""
        training = TrainingSettings(epochs=1, batch_size=100)
        corrected = played(federation_of(training=training), 5).server.weights["norm"]
        plain = played(federation_of(Plain(), training=training), 5).server.weights["norm"]
        torch.testing.assert_close(corrected.parameters, plain.parameters, rtol=1e-4, atol=1e-6)


class TestLedger:
    @pytest.mark.parametrize("architectures", [None, TWO], ids=["one model", "two models"])
    def test_eight_bytes_per_parameter_and_four_per_buffer_each_way(self, architectures):
        federation = federation_of(architectures=architectures, clients_per_round=3)
        prototypes, layout = federation.prototypes, federation.bank.layout
        for record in played(federation, 2).server.history:
            sizes = [layout(prototypes[client]) for client in record.clients]
            expected = sum(8 * s.parameter_count + 4 * (s.size - s.parameter_count) for s in sizes)
            assert record.bytes_up == record.bytes_down == expected

    def test_buffers_have_no_control(self):
        after = played(federation_of(), 1)
        layout = make_bank(norm=TinyNorm()).layout("norm")
        assert layout.buffers
        controls = [after.server.memory["local"]["norm"], *(state["local/control"] for state in after.clients.values())]
        assert {tuple(control.shape) for control in controls} == {(layout.parameter_count,)}


class OnlyFirst(Screen):
    kind: Literal["only_first"] = "only_first"

    def screen(self, view, updates):  # noqa: ARG002
        return Screened(updates.counted[:1], updates.teachers[:1], {u.client: "late" for u in updates.counted[1:]})


class TestWhoCounts:
    def test_a_refused_client_leaves_everything_as_it_was(self):
        def change(update):
            return dataclasses.replace(update, weights=update.weights * float("nan")) if update.client == 2 else update

        after = played(federation_of(bend=change), 1)
        assert set(after.clients) == {0, 1, 3}
        total = sum(state["local/control"] for state in after.clients.values())
        torch.testing.assert_close(after.server.memory["local"]["norm"], total / 4)

    def test_who_is_screened_does_not_enter_the_servers_control(self):
        after = played(federation_of(screen=(OnlyFirst(),)), 1)
        torch.testing.assert_close(after.server.memory["local"]["norm"], after.clients[0]["local/control"] / 4)


class TestOptimizer:
    def test_adam_is_refused(self):
        with pytest.raises(ConfigError, match=r"control_variates .* training\.optimizer adam .* use sgd"):
            ControlVariates().check(CheckContext(make_bank(), Adam(), has_validation=False))
        ControlVariates().check(CheckContext(make_bank(), Sgd(momentum=0.9), has_validation=False))

    def test_adam_is_refused_before_the_first_round(self, out):
        config = tiny_config("scaffold", training={"optimizer": {"kind": "adam"}})
        with pytest.raises(ConfigError, match=r"training\.optimizer adam"):
            Experiment(config).run(out)
        assert not list(out.glob("*.jsonl"))
