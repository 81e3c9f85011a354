from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedfuse.core.errors import DataError
from fedfuse.data.readers import Reading, read_npz

from .samples import random_images

LABELS = np.array([0, 1, 2])


@pytest.mark.parametrize("names", [("inputs", "labels"), ("x", "y")])
def test_one_part(tmp_path: Path, names: tuple[str, str]) -> None:
    images = random_images(3)
    np.savez(tmp_path / "d.npz", **{names[0]: images, names[1]: LABELS})
    train, test = read_npz(tmp_path / "d.npz", Reading())
    np.testing.assert_array_equal(train.inputs, images)
    assert train.labels.tolist() == [0, 1, 2]
    assert test is None


def test_train_and_test_and_channels_last(tmp_path: Path) -> None:
    images = random_images(3)
    last = images.transpose(0, 2, 3, 1)
    np.savez(tmp_path / "d.npz", x_train=last, y_train=LABELS, x_test=last[:1], y_test=LABELS[:1])
    train, test = read_npz(tmp_path / "d.npz", Reading())
    np.testing.assert_array_equal(train.inputs, images)
    assert test is not None
    np.testing.assert_array_equal(test.inputs, images[:1])


def test_features_become_float32_and_gray_images_get_a_channel(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", x=np.ones((3, 5)), y=LABELS)
    assert read_npz(tmp_path / "f.npz", Reading())[0].inputs.dtype == np.float32
    np.savez(tmp_path / "g.npz", x=random_images(3)[:, 0], y=LABELS)
    assert read_npz(tmp_path / "g.npz", Reading(resize=3, channels=3))[0].inputs.shape == (3, 3, 3, 3)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"pictures": LABELS}, "holds pictures; it must hold inputs and labels"),
        ({"x": np.zeros((2, 4)), "y": LABELS}, "do not fit 3 labels"),
        ({"x": np.zeros((3, 1, 4, 4), np.int32), "y": LABELS}, "images are int32; they must be uint8"),
        ({"x": np.zeros((3, 5, 4, 4), np.uint8), "y": LABELS}, "need 1 or 3 channels"),
        ({"x": np.full((3, 2), np.nan), "y": LABELS}, "row 0: an input is NaN"),
        ({"x": np.zeros((3, 2)), "y": LABELS / 2}, "labels are float64"),
        ({"x": np.zeros((3, 2), complex), "y": LABELS}, "inputs are complex128"),
        ({"x": np.zeros((0, 2)), "y": LABELS[:0]}, "is empty"),
        ({"x": np.array([[{}]] * 3), "y": LABELS}, "cannot be read as an npz archive"),
    ],
)
def test_bad_archives(tmp_path: Path, arrays: dict[str, np.ndarray], sentence: str) -> None:
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(DataError, match=sentence):
        read_npz(tmp_path / "bad.npz", Reading())


@pytest.mark.parametrize("keep", [0, 10, 200])
def test_cut_off(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "d.npz"
    np.savez(path, x=np.ones((3, 5)), y=LABELS)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match="cannot be read as an npz archive"):
        read_npz(path, Reading())
