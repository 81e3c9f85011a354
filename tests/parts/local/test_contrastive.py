"""MOON's loss against its formula and autograd, and whose previous model it is."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from pydantic import ValidationError

from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.federation.client import Clients
from fedfuse.models import Mlp
from fedfuse.parts.local import Batch, Hooks, Plain
from fedfuse.parts.local.contrastive import Contrastive
from fedfuse.parts.local.loop import train
from fedfuse.runtime.batches import epoch_batches
from fedfuse.runtime.optimizers import Sgd
from fedfuse.runtime.training import TrainingSettings
from tests.helpers import (
    AS_IT_IS,
    TinyNorm,
    make_bank,
    make_client,
    make_examples,
    make_federation,
    make_recipe,
    make_weights,
)

KEY = Key(3)
TRAINING = TrainingSettings(epochs=3, batch_size=6, optimizer=Sgd(learning_rate=0.2))
ARCHITECTURES = [TinyNorm(width=24), TinyNorm(projection_head=5), TinyNorm(width=24, dropout=0.3)]
"""Wide enough that no example has all its features dead: cosines of zero vectors are a matter of convention."""


def client_of(architecture=ARCHITECTURES[0], previous=None, training=TRAINING):
    """A visit from weights of seed 1, with previous models of other seeds or none."""
    bank = make_bank(net=architecture)
    weights = make_weights(bank, "net", 1)
    seeds = (previous,) if isinstance(previous, int) else previous
    state = {} if seeds is None else {"previous": torch.stack([make_weights(bank, "net", s).flat for s in seeds])}
    model = bank.lend("net", weights)
    return make_client(Task(2, 0, "net", weights), model, make_examples(18), training, 0.2, state, bank, KEY)


def frozen(architecture, seed):
    bank = make_bank(net=architecture)
    return bank.lend("net", make_weights(bank, "net", seed)).eval().requires_grad_(False)


def formula(z, z_glob, z_prevs, tau):
    """As printed, example by example."""

    def cos(a, b):
        return (a * b).sum() / (a.norm() * b.norm())

    losses = []
    for one, glob, *prevs in zip(z, z_glob, *z_prevs, strict=True):
        p, q = (cos(one, glob) / tau).exp(), sum((cos(one, prev) / tau).exp() for prev in prevs)
        losses.append(-(p / (p + q)).log())
    return torch.stack(losses).mean()


def by_hand(architecture, previous, strength, tau):
    bank, examples = make_bank(net=architecture), make_examples(18)
    model = bank.lend("net", make_weights(bank, "net", 1)).train()
    received, last = frozen(architecture, 1), [frozen(architecture, seed) for seed in previous]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    with KEY.child("dropout").default_generator():
        for epoch in range(TRAINING.epochs):
            for where in epoch_batches(18, 6, KEY.child("batches", epoch)):
                x, y = examples.inputs[where], examples.labels[where]
                z = model.features(x)
                loss = F.cross_entropy(model.classifier(z), y)
                loss = loss + strength * formula(z, received.features(x), [net.features(x) for net in last], tau)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    return Weights.of(model)


def trained(objective, client):
    train(client, objective.begin(client))
    return Weights.of(client.model)


@pytest.mark.parametrize("architecture", ARCHITECTURES[:2], ids=["features", "projection head"])
@pytest.mark.parametrize(("strength", "tau"), [(1.0, 0.5), (5.0, 0.5), (0.3, 0.1)])
@pytest.mark.parametrize("previous", [(2,), (2, 3), (4, 2, 3)])
def test_loss_and_gradient_are_the_formulas(architecture, strength, tau, previous):
    client, x = client_of(architecture, previous), make_examples(7, seed=4).inputs
    hooks = Contrastive(strength=strength, temperature=tau, previous=len(previous)).begin(client)
    z, z_glob = client.model.features(x), frozen(architecture, 1).features(x)
    z_prevs = [frozen(architecture, seed).features(x) for seed in previous]
    result = hooks.penalty(Batch(x, make_examples(7, seed=4).labels), z, client.model.classifier(z))
    expected = strength * formula(z, z_glob, z_prevs, tau)
    torch.testing.assert_close(result, expected)
    (gradient,) = torch.autograd.grad(result, z, retain_graph=True)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, z, retain_graph=True)[0], atol=1e-6, rtol=1e-4)
    assert gradient.abs().max() > 0


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=["features", "projection head", "dropout"])
def test_training_equals_autograd_on_the_whole_loss(architecture):
    for previous, others in (((2,), (3,)), ((2, 3), (2,))):
        objective = Contrastive(strength=2.0, previous=len(previous))
        result = trained(objective, client_of(architecture, previous))
        expected = by_hand(architecture, previous, 2.0, 0.5)
        assert torch.allclose(result.flat, expected.flat, rtol=1e-4, atol=1e-5)
        assert not torch.allclose(result.flat, by_hand(architecture, others, 2.0, 0.5).flat, rtol=1e-4, atol=1e-5)


class Softplus(Hooks):
    """The loss for one negative, in its shortest form."""

    def __init__(self, client):
        bank, task = client.bank, client.task
        self.received = bank.lend("net", task.weights, "received").eval()
        self.previous = bank.lend("net", Weights(client.state["previous"][0], task.weights.layout), "previous").eval()

    def penalty(self, batch, features, logits):  # noqa: ARG002
        with torch.no_grad():
            towards, away = self.received.features(batch.inputs), self.previous.features(batch.inputs)
        gap = F.cosine_similarity(features, away, dim=1) - F.cosine_similarity(features, towards, dim=1)
        return 2.0 * F.softplus(gap / 0.5).mean()


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=["features", "projection head", "dropout"])
def test_a_sum_over_one_negative_does_not_cost_a_rounding(architecture):
    client = client_of(architecture, previous=2)
    train(client, Softplus(client))
    assert trained(Contrastive(strength=2.0), client_of(architecture, previous=2)).equals(Weights.of(client.model))


def test_features_of_zero_length_have_a_finite_gradient():
    client = client_of(Mlp(hidden=(5,)), previous=2)
    hooks = Contrastive().begin(client)
    with torch.no_grad():
        for parameter in client.model.layers.parameters():
            parameter.fill_(-1.0)
    x = torch.rand(4, 4)
    z = client.model.features(x)
    assert not z.any()
    hooks.penalty(Batch(x, torch.zeros(4, dtype=torch.long)), z, client.model.classifier(z)).backward()
    assert all(p.grad.isfinite().all() for p in client.model.layers.parameters())


def test_a_very_low_temperature_does_not_overflow():
    client, x = client_of(previous=2), make_examples(7).inputs
    z = client.model.features(x)
    assert Contrastive(temperature=1e-4).begin(client).penalty(Batch(x, x), z, z).isfinite()


class TestIsPlain:
    @pytest.mark.parametrize("architecture", ARCHITECTURES, ids=["features", "projection head", "dropout"])
    def test_at_the_first_visit(self, architecture):
        objective = Contrastive(strength=5.0)
        result = trained(objective, client_of(architecture))
        assert result.equals(trained(Plain(), client_of(architecture)))
        assert not result.equals(trained(objective, client_of(architecture, previous=2)))

    def test_at_strength_zero(self):
        client = client_of(previous=2)
        assert trained(Contrastive(strength=0.0), client).equals(trained(Plain(), client_of()))
        hooks = Contrastive(strength=0.0).begin(client)
        assert type(hooks) is Hooks
        assert hooks.state() == {}


class TestPreviousModel:
    def test_the_teachers_do_not_change(self):
        client = client_of(previous=2)
        hooks = Contrastive().begin(client)
        train(client, hooks)
        assert Weights.of(hooks.received).equals(client.task.weights)
        (previous,) = hooks.previous
        assert torch.equal(Weights.of(previous).flat, client.state["previous"][0])
        assert all(p.grad is None for net in (hooks.received, previous) for p in net.parameters())
        assert not hooks.received.training
        assert not previous.training
        assert client.model.training

    def test_it_is_what_the_client_sent(self):
        bank = make_bank(net=TinyNorm())
        datasets = {client: make_examples(9 + client, seed=client) for client in range(2)}
        clients = Clients(datasets, AS_IT_IS, bank, make_recipe(local=Contrastive()), None, None, TRAINING, 10, KEY)
        task = Task(1, 0, "net", make_weights(bank, "net", 1))
        update, state = clients.work(task, {})
        assert set(state) == {"local/previous"}
        assert torch.equal(state["local/previous"], update.weights.flat.unsqueeze(0))
        kept = state["local/previous"].clone()
        clients.work(Task(2, 1, "net", make_weights(bank, "net", 4)), {})
        later, after = clients.work(Task(2, 0, "net", make_weights(bank, "net", 4)), state)
        assert torch.equal(state["local/previous"], kept), "the old state is a value, not a place"
        assert torch.equal(after["local/previous"], later.weights.flat.unsqueeze(0))

    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_the_latest_visits_are_kept_newest_first(self, number):
        bank = make_bank(net=TinyNorm())
        objective, datasets = Contrastive(previous=number), {0: make_examples(9)}
        clients = Clients(datasets, AS_IT_IS, bank, make_recipe(local=objective), None, None, TRAINING, 10, KEY)
        state, sent = {}, []
        for visit in range(1, 5):
            update, state = clients.work(Task(visit, 0, "net", make_weights(bank, "net", visit)), state)
            sent.insert(0, update.weights.flat)
            assert torch.equal(state["local/previous"], torch.stack(sent[:number]))

    def test_more_of_them_make_another_model_once_there_are_more(self):
        ends = {}
        for number in (1, 2):
            federation = make_federation(recipe=make_recipe(local=Contrastive(previous=number)), clients_per_round=4)
            snapshot = federation.start()
            for visit in (1, 2, 3):
                snapshot = federation.advance(snapshot)
                ends[number, visit] = snapshot.server.weights["mlp"]
        assert ends[1, 2].equals(ends[2, 2])
        assert not ends[1, 3].equals(ends[2, 3])

    def test_clients_do_not_leak(self):
        """A client's second visit is the same whether or not another client came in between."""
        bank = make_bank(net=TinyNorm())
        datasets = {client: make_examples(9 + client, seed=client) for client in range(2)}
        clients = Clients(datasets, AS_IT_IS, bank, make_recipe(local=Contrastive()), None, None, TRAINING, 10, KEY)
        first, second = (Task(n, 0, "net", make_weights(bank, "net", n)) for n in (1, 2))
        _, state = clients.work(first, {})
        alone, _ = clients.work(second, state)
        _, others = clients.work(Task(1, 1, "net", make_weights(bank, "net", 1)), {})
        clients.work(Task(2, 1, "net", make_weights(bank, "net", 2)), others)
        after_another, _ = clients.work(second, state)
        assert alone.weights.equals(after_another.weights)
        assert not alone.weights.equals(clients.work(second, others)[0].weights)

    def test_every_visited_client_keeps_its_own(self):
        federation = make_federation(recipe=make_recipe(local=Contrastive()), participation=0.5)
        snapshot, seen = federation.start(), set()
        for _ in range(3):
            before = snapshot.clients
            snapshot = federation.advance(snapshot)
            now = set(snapshot.server.history[-1].clients)
            seen |= now
            assert set(snapshot.clients) == seen
            for client in set(before) - now:
                assert torch.equal(snapshot.clients[client]["local/previous"], before[client]["local/previous"])
        flats = [state["local/previous"] for state in snapshot.clients.values()]
        assert len({tuple(flat.flatten().tolist()) for flat in flats}) == len(seen)


@pytest.mark.parametrize("head", [None, 5])
def test_traffic_is_fedavgs(head):
    bank = make_bank(net=TinyNorm(projection_head=head))
    federation = make_federation(bank, make_recipe(local=Contrastive()))
    snapshot = federation.start()
    for _ in range(2):
        snapshot = federation.advance(snapshot)
        record = snapshot.server.history[-1]
        assert record.bytes_down == record.bytes_up == 4 * bank.layout("net").size * len(record.clients)


@pytest.mark.parametrize("wrong", [{"strength": -1.0}, {"temperature": 0.0}, {"previous": 0}])
def test_ranges(wrong):
    with pytest.raises(ValidationError):
        Contrastive(**wrong)
