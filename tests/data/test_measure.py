from __future__ import annotations

import numpy as np
import pytest

from fedfuse.core.randomness import Key
from fedfuse.data import DataSettings, load
from fedfuse.data.measure import measure

from .samples import random_images


def test_images_are_measured_as_if_all_pixels_were_floats() -> None:
    images = random_images(5000, side=3)
    constants = measure(images)
    np.testing.assert_allclose(constants.mean, (images / 255).mean(axis=(0, 2, 3)))
    np.testing.assert_allclose(constants.std, (images / 255).std(axis=(0, 2, 3)))


def test_a_feature_that_never_varies_keeps_its_scale() -> None:
    assert measure(np.array([[1.0, 5.0], [3.0, 5.0]], np.float32)).std == (1.0, 1.0)


def test_constants_do_not_depend_on_who_gets_what() -> None:
    """Every node of a deployment and every seed normalises alike."""
    kinds = ({}, {"public": 0.5}, {"test": 0.4, "split": "in_order"}, {"train_limit": 200})
    found = {load(DataSettings(name="digits", **values), Key(seed)).normalisation for seed, values in enumerate(kinds)}
    assert found == {measure(load(DataSettings(name="digits"), Key(0)).train.inputs.numpy())}


@pytest.mark.parametrize("columns", [1, 2, 7, 64])
@pytest.mark.parametrize("rows", [1, 4096, 4097, 10_001])
def test_numbers_are_measured_in_blocks_with_the_bits_of_the_whole(rows: int, columns: int) -> None:
    random = np.random.default_rng(columns)
    features = (random.standard_normal((rows, columns)) * random.uniform(0, 100, columns) + 3).astype(np.float32)
    constants, std = measure(features), features.std(axis=0, dtype=np.float64)
    assert constants.mean == tuple(features.mean(axis=0, dtype=np.float64).tolist())
    assert constants.std == tuple(np.where(std > 0, std, 1.0).tolist())
