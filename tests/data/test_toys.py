from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from fedfuse.core.randomness import Key
from fedfuse.data import DataSettings, load, toys


@pytest.mark.parametrize("name", ["blobs", "swiss_roll"])
def test_generated_sets_follow_the_key_and_the_settings(name: str) -> None:
    settings = DataSettings(name=name, examples=31, classes=4, spread=0.1)
    first, again, other = load(settings, Key(0)), load(settings, Key(0)), load(settings, Key(1))
    assert first.train.inputs.equal(again.train.inputs)
    assert not first.train.inputs.equal(other.train.inputs)
    assert first.shape == (2,)
    assert first.classes == 4
    assert sorted(np.bincount(first.train.labels.numpy()).tolist()) == [7, 8, 8, 8]


def test_blobs_without_spread_are_their_centres() -> None:
    dataset = load(DataSettings(name="blobs", classes=3, spread=0.0), Key(0))
    angles = 2 * np.pi * dataset.train.labels.numpy() / 3
    np.testing.assert_allclose(dataset.train.inputs.numpy(), np.stack([np.cos(angles), np.sin(angles)], 1), atol=1e-6)


def test_spiral_arms_are_turns_of_one_another() -> None:
    dataset = load(DataSettings(name="swiss_roll", spread=0.0), Key(0))
    points = dataset.train.inputs.numpy() @ np.array([1, 1j])
    turned = points * np.exp(-2j * np.pi * dataset.train.labels.numpy() / 3)
    radius = np.abs(turned)
    np.testing.assert_allclose(turned, radius * np.exp(1.5j * np.pi * radius), atol=1e-5)


def test_digits_are_scikit_learns_in_order() -> None:
    dataset = load(DataSettings(name="digits"), Key(0))
    images = dataset.train.inputs.numpy()
    assert images.shape == (1797, 1, 8, 8)
    assert dataset.test is None
    np.testing.assert_array_equal(np.rint(images[:, 0] / 255 * 16), load_digits().images)
    assert load(DataSettings(name="digits", resize=16, channels=3, train_limit=5), Key(0)).shape == (3, 16, 16)


def test_digits_are_those_of_scikit_learn(monkeypatch):
    """From its file, and by its function should the file lie elsewhere one day."""
    pixels, labels = load_digits(return_X_y=True)
    expected = np.column_stack([pixels, labels])
    assert np.array_equal(toys._digits_table(), expected)
    monkeypatch.setattr(toys, "find_spec", lambda _name: None)
    assert np.array_equal(toys._digits_table(), expected)
