"""One-bit training with error feedback against a hand-written loop; the memory belongs to the client."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.federation.client import Clients
from fedfuse.parts.binary import norm_parameters, quantise
from fedfuse.parts.local import OneBit
from fedfuse.runtime.batches import epoch_batches
from fedfuse.runtime.optimizers import Sgd
from fedfuse.runtime.training import TrainingSettings
from tests.helpers import AS_IT_IS, TinyNorm, make_bank, make_client, make_examples, make_recipe, make_weights

TRAINING = TrainingSettings(epochs=2, batch_size=5, optimizer=Sgd(learning_rate=0.2))


def make_clients():
    datasets = {client: make_examples(14, seed=client) for client in range(2)}
    bank, recipe = make_bank(norm=TinyNorm()), make_recipe(local=OneBit())
    return Clients(datasets, AS_IT_IS, bank, recipe, None, None, TRAINING, 10, Key(1))


def by_hand(weights, examples, number, client, memory):
    model = make_bank(norm=TinyNorm()).lend("norm", weights).train()
    exact = norm_parameters(model)
    binary = {name: p for name, p in model.named_parameters() if name not in exact}
    memory = {name: memory.get(name, torch.zeros_like(p)) for name, p in binary.items()}

    def feed_back():
        with torch.no_grad():
            for name, p in binary.items():
                wanted = p + memory[name]
                p.copy_(quantise(wanted))
                memory[name] = wanted - p

    feed_back()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, fused=True)
    key = Key(1).child("round", number, "client", client)
    for epoch in range(2):
        for where in epoch_batches(14, 5, key.child("batches", epoch)):
            optimizer.zero_grad()
            F.cross_entropy(model(examples.inputs[where]), examples.labels[where]).backward()
            optimizer.step()
            feed_back()
    return Weights.of(model), memory


def test_two_visits_equal_a_hand_written_loop_bit_for_bit():
    clients, weights, state, memory = make_clients(), make_weights(make_bank(norm=TinyNorm()), "norm", 3), {}, {}
    for number in (1, 2):
        update, state = clients.work(Task(number, 0, "norm", weights), state)
        expected, memory = by_hand(weights, clients.datasets[0], number, 0, memory)
        assert update.weights.equals(expected)
        assert state.keys() == {f"local/{name}" for name in memory}
        assert all(torch.equal(state[f"local/{name}"], memory[name]) for name in memory)
        weights = update.weights


def test_weights_have_two_values_per_tensor_and_norms_are_free():
    clients = make_clients()
    update, _ = clients.work(Task(1, 0, "norm", make_weights(clients.bank, "norm", 3)), {})
    exact = norm_parameters(clients.bank.network("norm"))
    for name, _ in update.weights.layout.parameters:
        assert name in exact or update.weights[name].unique().numel() <= 2


def test_the_error_is_what_quantising_took_away():
    """Weights plus memory is what unquantised steps would have reached, summed over all quantisations."""
    clients = make_clients()
    start = make_weights(clients.bank, "norm", 3)
    hooks = OneBit().begin(_client(clients, start))
    for name, p in clients.bank.network("norm").named_parameters():
        if name in hooks.state():
            torch.testing.assert_close(p.detach() + hooks.state()[name], start[name])


def _client(clients, weights):
    model = clients.bank.lend("norm", weights)
    return make_client(Task(1, 0, "norm", weights), model, clients.datasets[0], TRAINING, 0.2, {}, clients.bank, Key(0))
