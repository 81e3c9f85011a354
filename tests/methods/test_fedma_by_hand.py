"""FedMA over several cycles, written again with numpy and loops: training, matching, freezing, rebuilding, averaging.

Of fedfuse it takes the data, the order of batches, who takes part, and the order of the sweeps; nothing that computes.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from fedfuse.methods import METHODS
from fedfuse.models import Mlp
from fedfuse.runtime.batches import epoch_batches
from tests.helpers import CLASSES, make_bank, make_examples, make_federation

HIDDEN, RATE, BATCH = 7, 0.1, 4
SIGMA, SIGMA0, GAMMA, PRIOR_BIAS, SWEEPS = 1.0, 1.0, 7.0, 0.1, 5


class Network:
    """One hidden layer, in double precision."""

    def __init__(self, w1, b1, w2, b2):
        self.w1, self.b1, self.w2, self.b2 = (np.array(a, dtype=np.float64) for a in (w1, b1, w2, b2))

    def train(self, x, y, batches, held):
        """SGD on the cross-entropy; ``held`` keeps the first layer as it is."""
        for where in batches:
            inputs, labels = x[where], y[where]
            before = inputs @ self.w1.T + self.b1
            hidden = np.maximum(before, 0)
            logits = hidden @ self.w2.T + self.b2
            p = np.exp(logits - logits.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            p[np.arange(len(labels)), labels] -= 1
            p /= len(labels)
            back = (p @ self.w2) * (before > 0)
            self.w2 -= RATE * p.T @ hidden
            self.b2 -= RATE * p.sum(axis=0)
            if not held:
                self.w1 -= RATE * back.T @ inputs
                self.b1 -= RATE * back.sum(axis=0)


def gain(w, members, clients, rank):
    """Of one neuron as one that stands for ``members``, or as the rank-th new one."""
    prior = np.append(np.zeros(len(w) - 1), PRIOR_BIAS)
    precision = 1 / SIGMA0**2 + len(members) / SIGMA**2
    total = prior / SIGMA0**2 + sum(members, np.zeros(len(w))) / SIGMA**2
    value = ((w / SIGMA**2 + total) ** 2).sum() / (1 / SIGMA**2 + precision) - (total**2).sum() / precision
    if members:
        return value + np.log(len(members) / (clients - len(members)))
    return value + 2 * np.log(GAMMA / clients) - 2 * np.log(rank)


def matched(layers, orders):
    """Global neurons as lists of (client, neuron), by placing every client and then again in these orders."""
    groups = []

    def place(client):
        vectors = [[layers[c][n] for c, n in group] for group in groups]
        rows = layers[client]
        table = [
            [gain(w, v, len(layers), 0) for v in vectors]
            + [gain(w, [], len(layers), r) for r in range(1, len(rows) + 1)]
            for w in rows
        ]
        if not groups:
            columns = range(len(rows))
        else:
            _, columns = linear_sum_assignment(np.array(table), maximize=True)
        for neuron, column in enumerate(columns):
            while len(groups) <= column:
                groups.append([])
            groups[column].append((client, neuron))

    for client in range(len(layers)):
        place(client)
    for order in orders:
        for client in order:
            groups[:] = [kept for group in groups if (kept := [pair for pair in group if pair[0] != client])]
            place(client)
    return groups


def posterior(vectors):
    prior = np.append(np.zeros(len(vectors[0]) - 1), PRIOR_BIAS)
    return (prior / SIGMA0**2 + sum(vectors) / SIGMA**2) / (1 / SIGMA0**2 + len(vectors) / SIGMA**2)


def cycle(network, places, present, key, rounds):
    """One cycle by hand: the global network, and where the neurons of those present are in it."""
    common = sorted(range(len(network.w1)), key=lambda n: (-sum(n in own for own in places.values()), n))[:HIDDEN]
    locals_ = {}
    for client in present:
        own = places.get(client, sorted(common))
        locals_[client] = Network(network.w1[own], network.b1[own], network.w2[:, own], network.b2)
    examples = {client: make_examples(8 + 3 * client, seed=client) for client in present}

    def train(round_number, held):
        for client, model in locals_.items():
            own = key.child("round", round_number, "client", client)
            x, y = examples[client].inputs.double().numpy(), examples[client].labels.numpy()
            model.train(x, y, [b.numpy() for b in epoch_batches(len(y), BATCH, own.child("batches", 0))], held)

    train(rounds[0], held=False)
    layers = [np.column_stack([locals_[c].w1, locals_[c].b1]) for c in present]
    sweep = key.child("round", rounds[0], "merge/mlp", "layers.1")
    orders = [sweep.child("sweep", s).numpy().permutation(len(present)).tolist() for s in range(SWEEPS)]
    groups = matched(layers, orders)
    neurons = np.array([posterior([layers[k][n] for k, n in group]) for group in groups])
    places = {
        client: [next(g for g, group in enumerate(groups) if (k, n) in group) for n in range(HIDDEN)]
        for k, client in enumerate(present)
    }
    for client, model in locals_.items():
        carried = np.zeros((CLASSES, len(groups)))
        carried[:, places[client]] = model.w2
        model.w1, model.b1, model.w2 = neurons[:, :-1].copy(), neurons[:, -1].copy(), carried
    train(rounds[1], held=True)
    counts = np.array([np.bincount(examples[c].labels.numpy(), minlength=CLASSES) for c in present], dtype=float)
    sizes = np.array([len(examples[c]) for c in present], dtype=float)
    shares = np.where(counts.sum(0) > 0, counts / np.maximum(counts.sum(0), 1), (sizes / sizes.sum())[:, None])
    w2 = sum(shares[k][:, None] * locals_[c].w2 for k, c in enumerate(present))
    b2 = sum(shares[k] * locals_[c].b2 for k, c in enumerate(present))
    return Network(neurons[:, :-1], neurons[:, -1], w2, b2), places


def in_the_order_of(ours, network, places):
    """Which of several new neurons comes first is all the same to the gains, so both may have chosen differently."""
    theirs = np.column_stack([ours["layers.1.weight"].numpy(), ours["layers.1.bias"].numpy()])
    own = np.column_stack([network.w1, network.b1])
    order = np.abs(theirs[:, None] - own[None]).max(axis=2).argmin(axis=1)
    assert sorted(order) == list(range(len(own)))
    where = {int(old): new for new, old in enumerate(order)}
    places = {client: [where[neuron] for neuron in neurons] for client, neurons in places.items()}
    return Network(network.w1[order], network.b1[order], network.w2[:, order], network.b2), places


@pytest.mark.parametrize("clients_per_round", [5, 3])
def test_every_cycle_is_the_one_written_by_hand(clients_per_round):
    bank = make_bank(mlp=Mlp(hidden=(HIDDEN,)))
    federation = make_federation(
        bank=bank, recipe=METHODS["fedma"].recipe, clients=5, clients_per_round=clients_per_round
    )
    snapshot = federation.start()
    first = snapshot.server.weights["mlp"]
    names = ("layers.1.weight", "layers.1.bias", "classifier.weight", "classifier.bias")
    network, places = Network(*(first[name].numpy() for name in names)), {}
    cohorts = set()
    for number in range(4):
        rounds = (2 * number + 1, 2 * number + 2)
        snapshot = federation.advance(federation.advance(snapshot))
        present = list(snapshot.server.history[-1].clients)
        cohorts.add(tuple(present))
        ours = snapshot.server.weights["mlp"]
        network, places = in_the_order_of(ours, *cycle(network, places, present, federation.key, rounds))
        for name, expected in zip(names, (network.w1, network.b1, network.w2, network.b2), strict=True):
            assert ours[name].shape == expected.shape
            np.testing.assert_allclose(ours[name].numpy(), expected, rtol=1e-4, atol=1e-5)
    assert len(cohorts) > 1 or clients_per_round == 5
