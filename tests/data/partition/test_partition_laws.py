"""The laws that every partition keeps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.data.partition import (
    AnyPartition,
    Dirichlet,
    DirichletBalanced,
    DirichletEqual,
    DirichletFloor,
    DirichletSliced,
    DrawnPartition,
    Iid,
    Partition,
    Quantity,
    Step,
    base,
)

alphas = st.floats(0.01, 100)
clients = st.integers(1, 25)

partitions = st.one_of(
    st.builds(Iid, clients=clients),
    st.builds(Dirichlet, clients=clients, alpha=alphas, min_examples=st.integers(1, 5)),
    st.builds(
        DirichletBalanced,
        clients=clients,
        alpha=alphas,
        min_examples=st.integers(1, 5),
        guaranteed_per_class=st.integers(0, 2),
    ),
    st.builds(DirichletSliced, clients=clients, alpha=alphas),
    st.builds(DirichletEqual, clients=clients, alpha=alphas),
    st.builds(DirichletFloor, clients=clients, alpha=alphas),
    st.builds(Step, clients=clients, major_classes=st.integers(1, 4), minor_per_class=st.integers(0, 3)),
    st.builds(Quantity, clients=clients, alpha=alphas, min_examples=st.integers(1, 5)),
)


def random_labels(examples: int, classes: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, classes, examples)


def attempt(partition: DrawnPartition, labels: np.ndarray, classes: int, key: Key) -> tuple[list[np.ndarray], str]:
    """The assignment, or the sentence that refused it."""
    try:
        return partition.assign(labels, classes, key), ""
    except ConfigError as error:
        return [], str(error)


@pytest.fixture(autouse=True, scope="module")
def give_up_early() -> object:
    """Rejection needs few draws on sets this small, and impossible ones should fail at once."""
    patch = pytest.MonkeyPatch()
    patch.setattr(base, "TRIES", 100)
    yield
    patch.undo()


@settings(deadline=None, max_examples=300)
@given(partition=partitions, examples=st.integers(25, 400), classes=st.integers(1, 6), seed=st.integers(0, 2**32))
def test_disjoint_complete_sorted_nonempty_and_deterministic(
    partition: DrawnPartition, examples: int, classes: int, seed: int
) -> None:
    labels = random_labels(examples, classes, seed)
    parts, refusal = attempt(partition, labels, classes, Key(seed))
    assert refusal.startswith("partition.") or not refusal
    assume(not refusal)
    together = np.concatenate(parts)
    assert len(parts) == partition.clients
    assert len(np.unique(together)) == len(together)
    if isinstance(partition, DirichletFloor):
        assert examples - len(together) < max(1, classes * partition.clients)
    else:
        assert len(together) == examples
    assert all(len(part) for part in parts)
    assert all((np.diff(part) > 0).all() for part in parts)
    again = partition.assign(torch.from_numpy(labels), classes, Key(seed))
    assert all(np.array_equal(one, other) for one, other in zip(parts, again, strict=True))
    _check_promises(partition, parts, labels, classes)


def _check_promises(partition: DrawnPartition, parts: list[np.ndarray], labels: np.ndarray, classes: int) -> None:
    sizes = np.array([len(part) for part in parts])
    counts = np.stack([np.bincount(labels[part], minlength=classes) for part in parts])
    if isinstance(partition, Iid | DirichletSliced | DirichletEqual):
        assert sizes.max() - sizes.min() <= 1
    if isinstance(partition, Dirichlet | DirichletBalanced | Quantity):
        assert sizes.min() >= partition.min_examples
    if isinstance(partition, DirichletBalanced):
        assert counts.min() >= partition.guaranteed_per_class
    if isinstance(partition, Step):
        assert ((counts != partition.minor_per_class).sum(axis=1) <= partition.major_classes).all()


@pytest.mark.parametrize(
    "partition",
    [
        Iid(clients=5),
        Dirichlet(clients=5, alpha=1),
        DirichletBalanced(clients=5, alpha=1),
        DirichletSliced(clients=5, alpha=1),
        DirichletFloor(clients=5, alpha=1),
        DirichletEqual(clients=5, alpha=1),
        Step(clients=5, major_classes=2, minor_per_class=3),
        Quantity(clients=5, alpha=1),
    ],
    ids=lambda partition: partition.kind,
)
def test_another_key_gives_another_partition_and_json_the_same(partition: Partition) -> None:
    labels = np.arange(500) % 10
    first, other = partition.assign(labels, 10, Key(0)), partition.assign(labels, 10, Key(1))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    adapter: TypeAdapter[Partition] = TypeAdapter(AnyPartition)
    assert adapter.validate_json(partition.model_dump_json()) == partition
    with pytest.raises(ConfigError, match=r"partition\.clients = 5 is more than the 3"):
        partition.assign(labels[:3], 10, Key(0))


@pytest.mark.parametrize(
    "values", [{"kind": "iid", "clients": 0}, {"kind": "dirichlet", "clients": 2, "alpha": 0}, {"kind": "none"}]
)
def test_settings_out_of_range(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(AnyPartition).validate_python(values)
