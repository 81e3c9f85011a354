"""FedDistill+: the loss against its formula, the means against a loop over examples, leave-one-out by hand."""

from __future__ import annotations

import itertools
import math

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
from fedfuse.parts.local.label_logits import LabelLogits
from fedfuse.parts.local.loop import train
from fedfuse.runtime.batches import epoch_batches
from fedfuse.runtime.optimizers import Sgd
from fedfuse.runtime.training import TrainingSettings
from tests.helpers import (
    AS_IT_IS,
    CLASSES,
    TinyNorm,
    make_bank,
    make_client,
    make_examples,
    make_federation,
    make_recipe,
    make_update,
    make_view,
    make_weights,
)

KEY = Key(3)
TRAINING = TrainingSettings(epochs=2, batch_size=6, optimizer=Sgd(learning_rate=0.2))
TARGETS = torch.tensor([[2.0, -1.0, 0.5], [0.0, 1.0, -2.0], [-0.5, 0.3, 3.0]])
NAN = math.nan


def client_of(targets=None, state=None, dropout=0.0, labels=None):
    bank = make_bank(net=TinyNorm(dropout=dropout))
    weights = make_weights(bank, "net", 1)
    task = Task(2, 0, "net", weights, {} if targets is None else {"label_logits": targets})
    examples = make_examples(18)
    if labels is not None:
        examples = type(examples)(examples.inputs, labels)
    return make_client(task, bank.lend("net", weights), examples, TRAINING, 0.2, state or {}, bank, KEY)


def formula(logits, labels, targets, temperature):
    """T^2 KL(teacher || student), example by example; a label without a target costs nothing."""
    total = 0.0
    for row, label in zip(logits, labels, strict=True):
        teacher = targets[label]
        if not teacher.isnan().any():
            p, q = (teacher / temperature).softmax(0), (row / temperature).softmax(0)
            total = total + temperature**2 * (p * (p / q).log()).sum()
    return total / len(labels)


def by_hand(client, coefficient, temperature):
    """The trained weights, and every step's logits and labels."""
    bank = make_bank(net=TinyNorm())
    model = bank.lend("net", client.task.weights).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    seen = []
    for epoch in range(TRAINING.epochs):
        for where in epoch_batches(18, 6, KEY.child("batches", epoch)):
            labels, logits = client.examples.labels[where], model(client.examples.inputs[where])
            seen += zip(labels.tolist(), logits.detach(), strict=True)
            loss = F.cross_entropy(logits, labels)
            if "label_logits" in client.received:
                loss = loss + coefficient * formula(logits, labels, client.received["label_logits"], temperature)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return Weights.of(model), seen


def trained(objective, client):
    hooks = objective.begin(client)
    train(client, hooks)
    return Weights.of(client.model), hooks


def with_unknown(*labels):
    targets = TARGETS.clone()
    targets[list(labels)] = NAN
    return targets


@pytest.mark.parametrize("temperature", [1.0, 3.0])
@pytest.mark.parametrize("targets", [TARGETS, with_unknown(1), with_unknown(0, 2)], ids=["all", "two", "one"])
class TestLoss:
    def test_value_and_gradient(self, targets, temperature):
        logits = torch.randn(8, CLASSES, generator=torch.Generator().manual_seed(0), requires_grad=True)
        labels = torch.tensor([0, 1, 2, 2, 1, 0, 0, 1])
        hooks = LabelLogits(coefficient=0.7, temperature=temperature).begin(client_of(targets))
        result = hooks.penalty(Batch(logits, labels), logits, logits)
        expected = 0.7 * formula(logits, labels, targets, temperature)
        torch.testing.assert_close(result, expected)
        (gradient,), (by_formula,) = torch.autograd.grad(result, logits), torch.autograd.grad(expected, logits)
        torch.testing.assert_close(gradient, by_formula)
        unknown = targets.isnan().any(dim=1)[labels]
        assert not gradient[unknown].any()
        assert gradient[~unknown].abs().min() > 0

    def test_training(self, targets, temperature):
        expected, _ = by_hand(client_of(targets), 0.7, temperature)
        result, _ = trained(LabelLogits(coefficient=0.7, temperature=temperature), client_of(targets))
        assert torch.allclose(result.flat, expected.flat, rtol=1e-4, atol=1e-5)
        assert not torch.allclose(result.flat, by_hand(client_of(), 0.7, 1.0)[0].flat, rtol=1e-4, atol=1e-5)


class TestIsPlain:
    @pytest.mark.parametrize("dropout", [0.0, 0.3])
    def test_without_targets(self, dropout):
        result, _ = trained(LabelLogits(coefficient=5.0), client_of(dropout=dropout))
        assert result.equals(trained(Plain(), client_of(dropout=dropout))[0])

    def test_with_coefficient_zero(self):
        result, hooks = trained(LabelLogits(coefficient=0.0), client_of(TARGETS))
        assert result.equals(trained(Plain(), client_of())[0])
        assert type(hooks) is Hooks

    @pytest.mark.parametrize("participation", [1.0, 0.5])
    def test_a_federation_with_coefficient_zero(self, participation):
        ends = []
        for local in (Plain(), LabelLogits(coefficient=0.0)):
            federation = make_federation(recipe=make_recipe(local=local), participation=participation)
            snapshot = federation.start()
            for _ in range(3):
                snapshot = federation.advance(snapshot)
            ends.append(snapshot)
        plain, zero = ends
        assert zero.server.weights["mlp"].equals(plain.server.weights["mlp"])
        assert ("local" in zero.server.memory, zero.clients) == (False, {})
        assert [r.bytes_up for r in zero.server.history] == [r.bytes_up for r in plain.server.history]
        assert [r.bytes_down for r in zero.server.history] == [r.bytes_down for r in plain.server.history]


class TestSums:
    @pytest.mark.parametrize("targets", [None, TARGETS], ids=["round 1", "later"])
    def test_they_are_a_loop_over_examples(self, targets):
        _, seen = by_hand(client_of(targets), 0.1, 1.0)
        _, hooks = trained(LabelLogits(), client_of(targets))
        sums, counts = torch.zeros(CLASSES, CLASSES), torch.ones(CLASSES)
        for label, logits in seen:
            sums[label] += logits
            counts[label] += 1
        extras = hooks.extras()
        assert len(seen) == 18 * TRAINING.epochs
        assert torch.equal(extras["logit_counts"], counts)
        torch.testing.assert_close(extras["logit_sums"], sums, rtol=1e-4, atol=1e-4)
        assert not extras["logit_sums"].requires_grad

    @pytest.mark.parametrize("first", [0, 1])
    def test_means_are_over_the_counts_and_nan_where_there_was_nothing(self, first):
        labels = torch.arange(18) % 2
        objective = LabelLogits(count_from=first)
        _, hooks = trained(objective, client_of(labels=labels))
        extras = hooks.extras()
        assert extras["logit_counts"].tolist() == [18.0 + first, 18.0 + first, first]
        means = objective.class_means(extras)
        torch.testing.assert_close(means[:2], extras["logit_sums"][:2] / (18 + first))
        assert means[2].isnan().all()

    @pytest.mark.parametrize(("first", "share"), [(0, 1.0), (1, 0.5)])
    def test_a_label_seen_once_has_its_logits_or_half_of_them(self, first, share):
        objective, logits = LabelLogits(count_from=first), torch.randn(2, CLASSES)
        hooks = objective.begin(client_of())
        hooks.penalty(Batch(logits, torch.tensor([2, 0])), logits, logits)
        means = objective.class_means(hooks.extras())
        torch.testing.assert_close(means[[2, 0]], share * logits)
        assert means[1].isnan().all()

    @pytest.mark.parametrize("first", [0, 1])
    def test_they_go_on_from_visit_to_visit(self, first):
        objective = LabelLogits(count_from=first)
        _, hooks = trained(objective, client_of())
        state = hooks.state()
        kept = {name: tensor.clone() for name, tensor in state.items()}
        _, again = trained(objective, client_of(state=state))
        torch.testing.assert_close(again.extras()["logit_sums"], 2 * kept["logit_sums"], rtol=1e-4, atol=1e-4)
        assert torch.equal(again.extras()["logit_counts"], 2 * kept["logit_counts"] - first)
        assert all(torch.equal(state[name], kept[name]) for name in kept), "the old state is a value, not a place"

    def test_or_start_afresh(self):
        objective = LabelLogits(sums="each_visit")
        _, hooks = trained(objective, client_of())
        assert hooks.state() == {}
        _, again = trained(objective, client_of(state=trained(LabelLogits(), client_of())[1].state()))
        assert torch.equal(again.extras()["logit_sums"], hooks.extras()["logit_sums"])

    def test_clients_do_not_leak(self):
        bank = make_bank(net=TinyNorm())
        datasets = {client: make_examples(9 + client, seed=client) for client in range(2)}
        clients = Clients(datasets, AS_IT_IS, bank, make_recipe(local=LabelLogits()), None, None, TRAINING, 10, KEY)
        task = Task(1, 0, "net", make_weights(bank, "net", 1))
        alone, _ = clients.work(task, {})
        clients.work(Task(1, 1, "net", make_weights(bank, "net", 1)), {})
        again, _ = clients.work(task, {})
        assert all(torch.equal(alone.extras[name], again.extras[name]) for name in alone.extras)
        assert alone.extras["local/logit_counts"].sum() == 9 * TRAINING.epochs + CLASSES


BANK = make_bank()
WEIGHTS = make_weights(BANK, "mlp", 1)


def update_of(client, *rows):
    """A client whose mean logits are ``rows``; None is a label without examples."""
    sums = torch.tensor([[0.0] * CLASSES if row is None else [4 * x for x in row] for row in rows])
    counts = torch.tensor([1.0 if row is None else 4.0 for row in rows])
    return make_update(WEIGHTS, client, extras={"logit_sums": sums, "logit_counts": counts})


A, B, C = (1.0, 2.0, 3.0), (3.0, 2.0, 7.0), (-4.0, 0.0, 6.0)
ROUND_1 = [update_of(0, A, B, None), update_of(1, B, None, None), update_of(10, C, C, None)]


def memory_after(objective, *rounds):
    memory = {}
    for updates in rounds:
        memory = objective.after_round(make_view(BANK, memory=memory), updates, {})
    return memory


def sent(objective, memory, *clients):
    briefs = objective.broadcast(make_view(BANK, memory=memory, round=2), dict.fromkeys(clients, "mlp"))
    return {client: extras["label_logits"] for client, extras in briefs.items()}


def mean(*rows):
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


def assert_rows(result, *rows):
    expected = torch.tensor([[NAN] * CLASSES if row is None else list(row) for row in rows])
    torch.testing.assert_close(result, expected, equal_nan=True)


class TestServer:
    def test_nothing_is_sent_in_round_1(self):
        assert LabelLogits().broadcast(make_view(BANK), {0: "mlp", 1: "mlp"}) == {}

    def test_leave_one_out(self):
        objective = LabelLogits(send="leave_one_out")
        targets = sent(objective, memory_after(objective, ROUND_1), 0, 1, 2)
        assert_rows(targets[0], mean(B, C), C, None)
        assert_rows(targets[1], mean(A, C), mean(B, C), None)
        assert_rows(targets[2], mean(A, B, C), mean(B, C), None)

    def test_participants(self):
        objective = LabelLogits(send="participants")
        targets = sent(objective, memory_after(objective, ROUND_1), 0, 2)
        for rows in targets.values():
            assert_rows(rows, mean(A, B, C), mean(B, C), None)

    def test_the_next_round_replaces_a_clients_means(self):
        round_2 = [update_of(1, C, A, None), update_of(2, A, None, B)]
        objective = LabelLogits(send="leave_one_out")
        assert_rows(sent(objective, memory_after(objective, ROUND_1, round_2), 0)[0], mean(C, C, A), mean(A, C), B)
        objective = LabelLogits(send="participants")
        assert_rows(sent(objective, memory_after(objective, ROUND_1, round_2), 0)[0], mean(C, A), A, B)

    def test_who_is_alone_gets_nothing(self):
        objective = LabelLogits(send="leave_one_out")
        assert set(sent(objective, memory_after(objective, ROUND_1[:1]), 0, 1)) == {1}

    @pytest.mark.parametrize("send", ["leave_one_out", "participants"])
    def test_a_round_without_updates_changes_nothing(self, send):
        objective = LabelLogits(send=send)
        memory = memory_after(objective, ROUND_1)
        assert memory_after(objective, ROUND_1, []).keys() == memory.keys()

    @pytest.mark.parametrize("send", ["leave_one_out", "participants"])
    def test_the_order_of_the_memory_does_not_matter(self, send):
        objective = LabelLogits(send=send)
        values = {"2": 1.0, "10": -1e20, "1": 1e20}  # (1e20 + 1) - 1e20 is 0, (1e20 - 1e20) + 1 is 1
        memory = {name: torch.full((CLASSES, CLASSES), value) for name, value in values.items()}
        orders = [dict(items) for items in itertools.permutations(memory.items())]
        assert all(not sent(objective, order, 5)[5].any() for order in orders)


@pytest.mark.parametrize("send", ["leave_one_out", "participants"])
def test_traffic(send):
    bank = make_bank(net=TinyNorm())
    federation = make_federation(bank, make_recipe(local=LabelLogits(send=send)), participation=0.5)
    snapshot, size = federation.start(), 4 * bank.layout("net").size
    for number in (1, 2, 3):
        snapshot = federation.advance(snapshot)
        record = snapshot.server.history[-1]
        down = size if number == 1 else size + 4 * CLASSES**2
        assert record.bytes_down == down * len(record.clients)
        assert record.bytes_up == (size + 4 * (CLASSES**2 + CLASSES)) * len(record.clients)
    seen = {client for record in snapshot.server.history for client in record.clients}
    last = set(snapshot.server.history[-1].clients)
    assert set(snapshot.server.memory["local"]) == {str(c) for c in (seen if send == "leave_one_out" else last)}
    assert set(snapshot.clients) == seen


def test_architectures_teach_each_other():
    bank = make_bank(small=Mlp(hidden=(4,)), wide=Mlp(hidden=(9,)))
    federation = make_federation(bank, make_recipe(local=LabelLogits()), clients=2)
    assert list(federation.prototypes) == ["small", "wide"]
    memory = federation.advance(federation.start()).server.memory["local"]
    targets = sent(LabelLogits(), memory, 0, 1)
    torch.testing.assert_close(targets[0], memory["1"], equal_nan=True)
    torch.testing.assert_close(targets[1], memory["0"], equal_nan=True)


@pytest.mark.parametrize(
    "wrong", [{"coefficient": -0.1}, {"temperature": 0.0}, {"send": "all"}, {"sums": "some"}, {"count_from": 2}]
)
def test_ranges(wrong):
    with pytest.raises(ValidationError):
        LabelLogits(**wrong)
