"""The matching of one layer against loops, brute force and hand computations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from fedfuse.core.randomness import Key
from fedfuse.parts.merge.matching import Prior, gains, match, posterior_mean


def prior(features, sigma=1.0, sigma0=1.0, gamma=7.0, bias=0.1):
    mean = torch.zeros(features, dtype=torch.float64)
    mean[-1] = bias
    return Prior(mean, sigma, sigma0, gamma)


def normal(*shape, seed=0, scale=1.0):
    return scale * torch.randn(*shape, generator=Key(seed).torch(), dtype=torch.float64)


def gain_by_loops(w, members, believed, clients, rank=None):
    """The printed gain of one neuron for one global neuron that stands for ``members``, or for the rank-th new one."""
    mu, s2, s02 = believed.mean.numpy(), believed.sigma**2, believed.sigma0**2
    total, precision = mu / s02, 1 / s02
    for member in members:
        total, precision = total + member / s2, precision + 1 / s2
    value = 0.0
    for d in range(len(mu)):
        value += (w[d] / s2 + total[d]) ** 2 / (1 / s2 + precision) - total[d] ** 2 / precision
    if rank is not None:
        return value + 2 * np.log(believed.gamma / clients) - 2 * np.log(rank)
    return value + np.log(len(members) / (clients - len(members)))


def best_by_brute_force(matrix, groups, believed, clients):
    """The columns of the assignment with the largest total gain, over all of them."""
    scores = np.array(
        [
            [gain_by_loops(w, members, believed, clients) for members in groups]
            + [gain_by_loops(w, [], believed, clients, rank) for rank in range(1, len(matrix) + 1)]
            for w in matrix
        ]
    )
    rows = range(len(matrix))
    return max(itertools.permutations(range(scores.shape[1]), len(matrix)), key=lambda c: scores[rows, c].sum())


def groups_by_brute_force(matrices, believed, iterations, key):
    """The whole procedure with lists: which (client, neuron) pairs are one global neuron."""
    groups: list[list[tuple[int, int]]] = []

    def place(client):
        vectors = [[matrices[c][n] for c, n in group] for group in groups]
        columns = best_by_brute_force(matrices[client], vectors, believed, len(matrices))
        groups.extend([] for _ in range(max(columns) + 1 - len(groups)))
        for neuron, column in enumerate(columns):
            groups[column].append((client, neuron))

    for client in sorted(range(len(matrices)), key=lambda c: -len(matrices[c])):
        place(client)
    for sweep in range(iterations):
        for client in key.child("sweep", sweep).numpy().permutation(len(matrices)):
            left = [[pair for pair in group if pair[0] != client] for group in groups]
            groups = [group for group in left if group]
            place(int(client))
    return {frozenset(group) for group in groups}


def groups_of(matching):
    pairs = [(int(g), (c, n)) for c, where in enumerate(matching.assignments) for n, g in enumerate(where)]
    return {frozenset(pair for g, pair in pairs if g == index) for index in range(len(matching.neurons))}


def test_popularity_stops_counting():
    """Of 40 clients, 10 who have a neuron and 30 who do say the same for it, and 9 say less."""
    believed, w = prior(3), normal(1, 3)
    vector = normal(1, 3, seed=1)
    told = [gains(w, vector * c, torch.tensor([float(c)]), believed, 40)[0, 0] for c in (9, 10, 30)]
    fits = [believed.fit(w, vector * c, torch.tensor([float(c)]))[0, 0] for c in (9, 10, 30)]
    rest = [float(gain - fit) for gain, fit in zip(told, fits, strict=True)]
    assert rest == pytest.approx([np.log(9 / 31), np.log(10 / 30), np.log(10 / 30)])


@pytest.mark.parametrize(("sigma", "sigma0", "gamma"), [(1.0, 1.0, 7.0), (0.3, 2.0, 0.5)])
def test_gains_are_the_printed_ones(sigma, sigma0, gamma):
    believed = prior(4, sigma, sigma0, gamma)
    neurons, members = normal(3, 4, seed=1), [list(normal(c, 4, seed=c + 2).numpy()) for c in (1, 3)]
    sums = torch.stack([torch.from_numpy(np.sum(group, axis=0)) for group in members])
    table = gains(neurons, sums, torch.tensor([1.0, 3.0], dtype=torch.float64), believed, 5)
    expected = [
        [gain_by_loops(w, group, believed, 5) for group in members]
        + [gain_by_loops(w, [], believed, 5, rank) for rank in (1, 2, 3)]
        for w in neurons.numpy()
    ]
    np.testing.assert_allclose(table.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("gamma", [0.01, 1.0, 7.0])
@pytest.mark.parametrize("widths", [(2, 2), (3, 1, 2), (2, 3, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_is_the_procedure_with_brute_force_over_all_assignments(seed, widths, gamma):
    matrices = [normal(width, 3, seed=10 * seed + client, scale=2.0) for client, width in enumerate(widths)]
    believed, key = prior(3, gamma=gamma), Key(seed)
    matching = match(matrices, believed, 2, key)
    assert groups_of(matching) == groups_by_brute_force([m.numpy() for m in matrices], believed, 2, key)


def test_posterior_mean_by_hand():
    """sigma 2, sigma0 1/2: a client's vector weighs 1/4, the prior 4 times its mean of (0, .1)."""
    matrices = [torch.tensor([[4.0, 8.0], [1.0, 2.0]]).double(), torch.tensor([[8.0, 0.0]]).double()]
    believed = prior(2, sigma=2.0, sigma0=0.5)
    result = posterior_mean(matrices, [torch.tensor([1, 0]), torch.tensor([1])], believed)
    expected = [[0.25 / 4.25, (0.5 + 0.4) / 4.25], [3 / 4.5, (2 + 0.4) / 4.5]]
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


def test_the_global_matrix_is_the_posterior_mean_of_the_assignments():
    matrices = [normal(4, 3, seed=seed) for seed in range(3)]
    matching = match(matrices, prior(3), 2, Key(0))
    assert torch.equal(matching.neurons, posterior_mean(matrices, matching.assignments, prior(3)))


def test_one_client_keeps_its_neurons_in_their_order():
    (matrix,) = [normal(5, 3)]
    matching = match([matrix], prior(3, sigma0=1e6), 3, Key(0))
    assert matching.assignments[0].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(matching.neurons.numpy(), matrix.numpy(), rtol=1e-9)


def test_as_in_the_original_one_clients_neurons_shrink_to_half():
    (matrix,) = [normal(5, 3)]
    matching = match([matrix], prior(3, bias=0.0), 3, Key(0))
    np.testing.assert_allclose(matching.neurons.numpy(), matrix.numpy() / 2, rtol=1e-12)


@pytest.mark.parametrize("iterations", [0, 4])
def test_far_neurons_stay_apart_and_the_width_is_their_sum(iterations):
    matrices = [100 * torch.eye(9, dtype=torch.float64)[rows] for rows in ([0, 1, 2, 3], [4, 5], [6, 7, 8])]
    matching = match(matrices, prior(9), iterations, Key(0))
    assert matching.neurons.shape == (9, 9)
    assert sorted(torch.cat(matching.assignments).tolist()) == list(range(9))


@pytest.mark.parametrize("clients", [2, 6])
def test_shuffled_copies_are_found_whatever_the_order_of_the_clients(clients):
    base, random = normal(12, 5, scale=5.0), np.random.default_rng(1)
    orders = [torch.from_numpy(random.permutation(12)[: 12 - client]) for client in range(clients)]
    matrices = [base[order] + normal(len(order), 5, seed=c, scale=0.1) for c, order in enumerate(orders)]

    def groups(sequence):
        matching = match([matrices[c] for c in sequence], prior(5), 3, Key(4))
        named = {frozenset((sequence[c], n) for c, n in group) for group in groups_of(matching)}
        return named, matching.neurons

    (forward, one), (backward, other) = groups(range(clients)), groups(range(clients)[::-1])
    truth = [[(c, orders[c].tolist().index(n)) for c in range(clients) if n in orders[c]] for n in range(12)]
    assert forward == backward == {frozenset(group) for group in truth}
    assert float(torch.cdist(one, other).amin(dim=1).max()) < 1e-6


def test_same_key_same_bits():
    matrices = [normal(6, 3, seed=seed) for seed in range(4)]
    one, same = (match(matrices, prior(3), 3, Key(1)) for _ in range(2))
    assert torch.equal(one.neurons, same.neurons)
    assert all(torch.equal(a, b) for a, b in zip(one.assignments, same.assignments, strict=True))
    others = [match(matrices, prior(3), 3, Key(seed)) for seed in range(2, 12)]
    assert any(groups_of(other) != groups_of(one) for other in others)


@pytest.mark.parametrize("existing", [699, 700, 900])
def test_growth_slows_down_at_the_limit(existing):
    table = gains(normal(5, 2), normal(existing, 2), torch.ones(existing, dtype=torch.float64), prior(2), 3)
    assert table.shape == (5, existing + 1)


def test_a_layer_beyond_the_limit_still_finds_room_for_every_neuron():
    matrices = [1000 * torch.eye(710, dtype=torch.float64), 1000 * torch.eye(710, dtype=torch.float64)[:3]]
    matching = match(matrices, prior(710, bias=0.0), 1, Key(0))
    assert matching.assignments[0].unique().shape == (710,)
