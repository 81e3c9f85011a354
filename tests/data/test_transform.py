from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedfuse.core.randomness import Key
from fedfuse.data import Dataset, DataSettings, Examples, Normalisation, Transform, load

from .samples import random_images

CONSTANTS = Normalisation((0.49, 0.48, 0.44), (0.2, 0.19, 0.3))


def test_images_are_scaled_and_normalised() -> None:
    images = random_images(5)
    mean, std = (np.array(values)[None, :, None, None] for values in (CONSTANTS.mean, CONSTANTS.std))
    result = Transform(CONSTANTS, (3, 6, 6))(torch.from_numpy(images))
    assert result.dtype == torch.float32
    np.testing.assert_allclose(result.numpy(), (images / 255 - mean) / std, rtol=1e-5, atol=1e-5)


def test_features_are_normalised_without_scaling_and_left_alone() -> None:
    features = torch.randn(4, 3, generator=Key(0).torch())
    before = features.clone()
    result = Transform(CONSTANTS, (3,))(features)
    np.testing.assert_allclose(
        result.numpy(), (before.numpy() - np.array(CONSTANTS.mean)) / np.array(CONSTANTS.std), rtol=1e-5, atol=1e-6
    )
    assert features.equal(before)


@pytest.mark.parametrize(("choice", "mean", "std"), [("none", 0.0, 1.0), ("half", 0.5, 0.5), ("dataset", 0.3, 0.1)])
def test_the_settings_choose_the_constants(choice: str, mean: float, std: float) -> None:
    examples = Examples(torch.zeros(1, 1, 2, 2, dtype=torch.uint8), torch.zeros(1, dtype=torch.long))
    dataset = Dataset("d", examples, None, ("a",), Normalisation((0.3,), (0.1,)), "here")
    transform = Transform.of(dataset, DataSettings.model_validate({"name": "digits", "normalisation": choice}))
    assert transform.normalisation == Normalisation((mean,), (std,))


def slow_augment(images: np.ndarray, padding: int, flip: bool, generator: torch.Generator) -> np.ndarray:
    """One image at a time, with the same numbers drawn in the same order."""
    count, _, height, width = images.shape
    flips = torch.randint(0, 2, (count, 1), generator=generator) if flip else torch.zeros(count, 1)
    corners = torch.zeros(2, count, 1, dtype=torch.long)
    if padding:
        corners = torch.randint(0, 2 * padding + 1, (2, count, 1), generator=generator)
    result = []
    for number, image in enumerate(images):
        padded = np.pad(image, ((0, 0), (padding, padding), (padding, padding)))
        top, left = int(corners[0, number]), int(corners[1, number])
        crop = padded[:, top : top + height, left : left + width]
        result.append(crop[:, :, ::-1] if flips[number] else crop)
    return np.stack(result)


@given(
    padding=st.integers(0, 4), flip=st.booleans(), count=st.integers(1, 9), side=st.integers(1, 7), seed=st.integers(0)
)
def test_augmentation_equals_the_slow_one(padding: int, flip: bool, count: int, side: int, seed: int) -> None:
    images = random_images(count, side=side)
    transform = Transform(CONSTANTS, (3, side, side), padding, flip)
    key = Key(seed)
    result = transform.augment(torch.from_numpy(images), key.torch())
    np.testing.assert_array_equal(result.numpy(), slow_augment(images, padding, flip, key.torch()))
    assert result.equal(transform.augment(torch.from_numpy(images), key.torch()))


def test_without_augmentation_nothing_is_drawn() -> None:
    settings = DataSettings(name="digits")
    dataset = load(settings, Key(0))
    generator = Key(0).torch()
    assert Transform.of(dataset, settings).augment(dataset.train.inputs, generator) is dataset.train.inputs
    assert generator.get_state().equal(Key(0).torch().get_state())


def test_both_directions_and_all_corners_occur() -> None:
    image = torch.arange(1, 5, dtype=torch.uint8).reshape(1, 1, 2, 2).expand(2000, 1, 2, 2)
    transform = Transform(Normalisation((0.0,), (1.0,)), (1, 2, 2), 1, True)
    seen = {tuple(one.flatten().tolist()) for one in transform.augment(image, Key(0).torch())}
    assert {(1, 2, 3, 4), (2, 1, 4, 3), (0, 0, 0, 1), (4, 0, 0, 0)} <= seen
