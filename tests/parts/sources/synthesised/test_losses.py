"""The generator's losses, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fedfuse.core.randomness import Key
from fedfuse.parts.sources.synthesised.losses import divergence_loss, label_loss, moved, statistics_distance

LABELS = torch.tensor([0, 2, 1, 1])


def logits(seed):
    return 2 * torch.randn(4, 3, generator=torch.Generator().manual_seed(seed))


def softmax(values):
    powers = np.exp(values.numpy().astype(np.float64))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("hardness", [0.0, 1.0, 2.5])
def test_hard_inputs_count_more(hardness):
    said = softmax(logits(0))[range(4), LABELS]
    expected = -np.mean((1 - said) ** hardness * np.log(said))
    assert label_loss(logits(0).log_softmax(1), LABELS, hardness).item() == pytest.approx(expected, rel=1e-5)


def test_difficulty_is_a_weight_and_has_no_gradient():
    """d/dz of -(1 - p_y)^beta log p_y, the first factor held still, is (1 - p_y)^beta (p - onehot(y)) / n."""
    values = logits(1).requires_grad_()
    label_loss(values.log_softmax(1), LABELS, hardness=2.0).backward()
    said = softmax(values.detach())
    weight = (1 - said[range(4), LABELS]) ** 2
    assert np.allclose(values.grad.numpy(), weight[:, None] * (said - np.eye(3)[LABELS]) / 4, atol=1e-6)


def test_divergence_counts_where_classes_differ():
    teacher, student = logits(2), logits(3)
    p, q = softmax(teacher), softmax(student)
    differ = p.argmax(1) != q.argmax(1)
    assert 0 < differ.sum() < 4
    expected = -np.mean(differ * (p * np.log(p / q)).sum(1))
    assert divergence_loss(teacher.log_softmax(1), student).item() == pytest.approx(expected, rel=1e-5)
    assert divergence_loss(teacher.log_softmax(1), 3 * teacher).item() == 0


def network_with_norms():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.BatchNorm1d(8)).eval()
    for layer in (network[1], network[4]):
        layer.running_mean.normal_()
        layer.running_var.uniform_(0.5, 2)
    return network


def test_distance_of_statistics():
    """|| mean - remembered mean || + || variance - remembered variance ||, of what enters each layer, summed."""
    network, inputs = network_with_norms(), torch.randn(5, 1, 4, 4)
    with torch.no_grad(), statistics_distance(network) as distance:
        network(inputs)
        found = distance().item()
    with torch.no_grad():
        maps = network[0](inputs)
        rows = network[:4](inputs)
    expected = 0.0
    for layer, seen in ((network[1], maps.transpose(0, 1).reshape(2, -1).T.numpy()), (network[4], rows.numpy())):
        expected += np.linalg.norm(seen.mean(0) - layer.running_mean.numpy())
        expected += np.linalg.norm(seen.var(0) - layer.running_var.numpy())
    assert found == pytest.approx(expected, rel=1e-5)
    assert not any(layer._forward_pre_hooks for layer in network)


def test_no_batch_norm_no_distance():
    network = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3, track_running_stats=False))
    with statistics_distance(network) as distance:
        network(torch.randn(4, 3))
        assert distance().item() == 0


def test_inputs_move_to_where_the_answer_changes():
    """By the sign of d/dx u . softmax(D(x) / 4), which for D = W x is W^T (p u - p (p . u)) / 4."""
    matrix, inputs = torch.randn(3, 5, generator=torch.Generator().manual_seed(4)), logits(5)[:, :1].repeat(1, 5)
    there = moved(inputs, lambda x: x @ matrix.T, 3, 0.1, Key(0).torch())
    u = torch.empty(4, 3).uniform_(-1, 1, generator=Key(0).torch()).numpy()
    p = softmax(inputs @ matrix.T / 4)
    slope = (p * u - p * (p * u).sum(1, keepdims=True)) @ matrix.numpy()
    assert np.allclose((there - inputs).numpy(), 0.1 * np.sign(slope), atol=1e-6)


def test_a_broken_answer_moves_nothing():
    inputs = torch.ones(2, 3)
    assert torch.equal(moved(inputs, lambda x: x / 0 * 0, 3, 0.1, Key(0).torch()), inputs)
