"""What single partitions promise beyond the laws: the papers' numbers, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.data.partition import (
    Dirichlet,
    DirichletBalanced,
    DirichletEqual,
    DirichletSliced,
    Partition,
    Quantity,
    Step,
)


def class_counts(partition: Partition, labels: np.ndarray, classes: int, seed: int = 0) -> np.ndarray:
    parts = partition.assign(labels, classes, Key(seed))
    return np.stack([np.bincount(labels[part], minlength=classes) for part in parts])


@pytest.mark.parametrize(
    ("clients", "classes", "per_class", "major", "minor", "expected"),
    [(10, 10, 4000, 2, 10, 1960), (100, 100, 400, 5, 1, 61), (100, 200, 450, 2, 1, 351)],
    ids=["CIFAR-10", "CIFAR-100", "Tiny-ImageNet"],
)
def test_step_has_the_numbers_of_fedbe(
    clients: int, classes: int, per_class: int, major: int, minor: int, expected: int
) -> None:
    labels = np.repeat(np.arange(classes), per_class)
    partition = Step(clients=clients, major_classes=major, minor_per_class=minor)
    counts = class_counts(partition, labels, classes)
    assert ((counts == expected).sum(axis=1) == major).all()
    assert ((counts == minor).sum(axis=1) == classes - major).all()


def test_small_alpha_is_heterogeneous_and_large_alpha_is_not() -> None:
    labels = np.arange(20000) % 10
    for kind in (Dirichlet, DirichletBalanced, DirichletEqual, DirichletSliced):
        sharp, flat = (
            (class_counts(kind(clients=20, alpha=alpha), labels, 10) > 10).sum(axis=1).mean() for alpha in (0.1, 100)
        )
        assert sharp < 6 < 9.9 < flat


def test_sliced_matches_the_measured_classes_per_client() -> None:
    """20 clients of CIFAR-10: at alpha 0.01 about 2.0 classes with at least 1 % each, at 1 about 8.1."""
    labels = np.arange(45000) % 10
    for alpha, expected in ((0.01, 2.0), (1.0, 8.1)):
        shares = [
            (class_counts(DirichletSliced(clients=20, alpha=alpha), labels, 10, seed) >= 22).sum(axis=1).mean()
            for seed in range(3)
        ]
        assert abs(np.mean(shares) - expected) < 0.5


def test_quantity_keeps_the_mixture_of_labels() -> None:
    counts = class_counts(Quantity(clients=5, alpha=0.5, min_examples=2000), np.arange(50000) % 2, 2)
    assert np.ptp(counts.sum(axis=1)) > 2000
    np.testing.assert_allclose(counts[:, 0] / counts.sum(axis=1), 0.5, atol=0.05)


@pytest.mark.parametrize(
    ("partition", "sentence"),
    [
        (Dirichlet(clients=10, alpha=1, min_examples=11), "min_examples = 11 for 10 clients needs 110"),
        (Quantity(clients=10, alpha=1, min_examples=11), "min_examples = 11"),
        (DirichletBalanced(clients=11, alpha=1), "min_examples = 10 for 11 clients"),
        (
            DirichletBalanced(clients=10, alpha=1, min_examples=1, guaranteed_per_class=2),
            "guaranteed_per_class = 2 for 10 clients needs 20 examples of class 0, which has 10",
        ),
        (Step(clients=4, major_classes=2, minor_per_class=1), "covers at most 8 of 10 classes"),
        (Step(clients=4, major_classes=11, minor_per_class=1), "major_classes = 11 is more than the 10 classes"),
        (Step(clients=10, major_classes=2, minor_per_class=2), "minor_per_class = 2 .* class 0, which has 10"),
        (Dirichlet(clients=90, alpha=0.01), "alpha = 0.01 with 90 clients: in 5000 draws"),
    ],
)
def test_the_impossible_is_refused_with_its_key(partition: Partition, sentence: str) -> None:
    with pytest.raises(ConfigError, match=f"^partition.*{sentence}"):
        partition.assign(np.arange(100) % 10, 10, Key(0))
