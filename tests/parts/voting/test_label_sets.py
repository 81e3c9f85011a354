"""Members that know different classes: conditionals of one distribution give it back, and the equations hold."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from fedfuse.parts.voting.label_sets import LabelSets, mean_of_logits, mean_of_probabilities

CLASSES, INPUTS = 8, 12
COLUMNS = (torch.arange(5), torch.tensor([3, 4, 5, 6]), torch.tensor([7, 0, 6]))
SETS = LabelSets(COLUMNS, CLASSES)


def random(seed):
    return torch.Generator().manual_seed(seed)


def weights(seed):
    """A number, a column, and a table."""
    generator = random(seed)
    shapes = [(), (INPUTS, 1), (INPUTS, 3)]
    return [torch.rand(shape, generator=generator) + 0.1 for shape in shapes]


def answers(seed, loud=2.0):
    generator = random(seed)
    return [(loud * torch.randn(INPUTS, len(own), generator=generator)).double() for own in COLUMNS]


@pytest.mark.parametrize("seed", range(3))
def test_conditionals_of_one_distribution_give_it_back(seed):
    whole = (2 * torch.randn(INPUTS, CLASSES, generator=random(seed))).double().softmax(dim=1)
    said = [whole[:, own] / whole[:, own].sum(dim=1, keepdim=True) for own in COLUMNS]
    assert torch.allclose(mean_of_probabilities(said, weights(seed), SETS).exp(), whole, atol=1e-7)
    offsets = torch.randn(3, INPUTS, 1, generator=random(seed + 10)).double()
    logits = [one.log() + offset for one, offset in zip(said, offsets, strict=True)]
    assert torch.allclose(mean_of_logits(logits, weights(seed), SETS).exp(), whole, atol=1e-9)


def test_probabilities_minimise_the_divergence_from_every_member():
    said, counts = [one.softmax(dim=1) for one in answers(4)], torch.tensor([0.5, 1.0, 2.5])
    ours = mean_of_probabilities(said, list(counts), SETS)
    for row in range(3):

        def divergence(log_q, row=row):
            total = 0.0
            for own, one, weight in zip(COLUMNS, said, counts, strict=True):
                p, restricted = one[row].numpy(), np.exp(log_q[own.numpy()])
                total += float(weight) * np.sum(p * (np.log(p) - np.log(restricted / restricted.sum())))
            return total

        best = minimize(divergence, np.zeros(CLASSES), method="BFGS", options={"gtol": 1e-8})
        expected = np.exp(best.x) / np.exp(best.x).sum()
        assert np.allclose(ours[row].exp().numpy(), expected, atol=1e-5)


def test_logits_are_least_squares_with_an_offset_for_each_member():
    said, counts = answers(5), torch.tensor([0.5, 1.0, 2.5])
    ours = mean_of_logits(said, list(counts), SETS)
    for row in range(3):
        lines, right = [], []
        for member, (own, one) in enumerate(zip(COLUMNS, said, strict=True)):
            for column, place in enumerate(own.tolist()):
                line = np.zeros(CLASSES + len(COLUMNS))
                line[place] = line[CLASSES + member] = 1
                lines.append(line * float(counts[member]) ** 0.5)
                right.append(float(one[row, column]) * float(counts[member]) ** 0.5)
        solution = np.linalg.lstsq(np.array(lines), np.array(right), rcond=None)[0][:CLASSES]
        expected = np.exp(solution - solution.max())
        assert np.allclose(ours[row].exp().numpy(), expected / expected.sum(), atol=1e-9)


@pytest.mark.parametrize("mean", [mean_of_probabilities, mean_of_logits])
def test_equal_sets_leave_the_weighted_mean(mean):
    sets, counts = LabelSets.equal(3, 4), torch.tensor([1.0, 2.0, 0.5]).double()
    said = [torch.randn(6, 4, generator=random(seed)).double() for seed in range(3)]
    if mean is mean_of_probabilities:
        said = [one.softmax(dim=1) for one in said]
        expected = torch.einsum("k,knc->nc", counts, torch.stack(said)) / counts.sum()
    else:
        expected = (torch.einsum("k,knc->nc", counts, torch.stack(said)) / counts.sum()).softmax(dim=1)
    assert torch.allclose(mean(said, list(counts), sets).exp(), expected, atol=1e-12)


@pytest.mark.parametrize("mean", [mean_of_probabilities, mean_of_logits])
@pytest.mark.parametrize("loud", [1.0, 40.0])
def test_an_input_is_answered_alike_whatever_its_neighbours(mean, loud):
    said, counts = answers(7, loud), weights(7)
    said = [one.softmax(dim=1) for one in said] if mean is mean_of_probabilities else said
    together = mean(said, counts, SETS)
    some = [weight if weight.ndim == 0 else weight[4:6] for weight in counts]
    assert torch.equal(mean([one[4:6] for one in said], some, SETS), together[4:6])
    assert together.isfinite().all()


def test_who_hangs_together():
    sets = LabelSets(tuple(torch.tensor(own) for own in ([0, 1], [2, 3], [4, 5], [1, 4], [6])), 7)
    assert sets.groups == [[0, 2, 3], [1], [4]]
    assert SETS.groups == [[0, 1, 2]]
    assert not SETS.are_equal
    assert LabelSets((torch.tensor([1, 0]), torch.tensor([0, 1])), 2).are_equal


def test_labels_as_each_member_numbers_its_classes():
    first, second, third = SETS.own_labels(torch.tensor([0, 4, 6, 7]))
    assert first.tolist() == [0, 4, -1, -1]
    assert second.tolist() == [-1, 1, 3, -1]
    assert third.tolist() == [1, -1, 2, 0]
