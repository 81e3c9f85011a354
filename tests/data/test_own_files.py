from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.randomness import Key
from fedfuse.data import DataSettings, load

from .samples import WriteParquet, encode, random_images


def write_folder(root: Path, classes: dict[str, np.ndarray]) -> None:
    for name, images in classes.items():
        (root / name).mkdir(parents=True)
        for number, data in enumerate(encode(images)):
            (root / name / f"{number}.png").write_bytes(data)
        for hidden in (".notes.txt", "Thumbs.db", "desktop.ini"):
            (root / name / hidden).write_text("hidden files do not count")


def test_image_folder_with_a_test_folder(tmp_path: Path) -> None:
    cats, dogs = random_images(3, seed=1), random_images(2, seed=2)
    write_folder(tmp_path / "train", {"cat": cats, "dog": dogs})
    write_folder(tmp_path / "test", {"dog": dogs[:1]})
    dataset = load(DataSettings(name="images", path=str(tmp_path)), Key(0))
    assert dataset.class_names == ("cat", "dog")
    np.testing.assert_array_equal(dataset.train.inputs.numpy(), np.concatenate([cats, dogs]))
    assert dataset.train.labels.tolist() == [0, 0, 0, 1, 1]
    assert dataset.test is not None
    assert dataset.test.labels.tolist() == [1]


def test_an_image_folder_whose_splits_are_called_otherwise(tmp_path: Path) -> None:
    for split in ("Train", "TEST", "val"):
        write_folder(tmp_path / split, {"cat": random_images(3, seed=1), "dog": random_images(2, seed=2)})
    with pytest.raises(DataError, match=r"val lies beside Train and would not be read; remove it"):
        load(DataSettings(name="images", path=str(tmp_path)), Key(0))
    own = load(DataSettings(name="images", path=str(tmp_path), test_path=str(tmp_path / "val")), Key(0))
    (tmp_path / "val").rename(tmp_path / ".val")
    dataset = load(DataSettings(name="images", path=str(tmp_path)), Key(0))
    for one in (own, dataset):
        assert one.class_names == ("cat", "dog")
        assert one.test is not None
        assert len(one.test.labels) == 5


def test_image_folder_without_splits_is_read_again_when_a_class_is_added(tmp_path: Path) -> None:
    write_folder(tmp_path / "d", {"b": random_images(2)})
    settings = DataSettings(name="images", path=str(tmp_path / "d"))
    assert load(settings, Key(0)).train.labels.tolist() == [0, 0]
    write_folder(tmp_path / "d", {"a": random_images(1)})
    assert load(settings, Key(0)).train.labels.tolist() == [0, 1, 1]


def test_image_folder_mistakes(tmp_path: Path) -> None:
    settings = DataSettings(name="images", path=str(tmp_path / "d"))
    with pytest.raises(DataError, match=r"data\.path: .*d does not exist"):
        load(settings, Key(0))
    (tmp_path / "d").mkdir()
    with pytest.raises(DataError, match="has no subfolders"):
        load(settings, Key(0))
    (tmp_path / "d" / "cat").mkdir()
    with pytest.raises(DataError, match="holds no images"):
        load(settings, Key(0))
    (tmp_path / "d" / "cat" / "broken.png").write_bytes(b"no")
    with pytest.raises(DataError, match=r"broken\.png cannot be read as an image"):
        load(settings, Key(0))


@pytest.mark.parametrize("stray", ["cat/notes.txt", "cat/more/1.png", "notes.txt", "1.png"])
@pytest.mark.parametrize("part", ["train", "test"])
def test_whatever_is_in_an_image_folder_is_read_or_named(tmp_path: Path, part: str, stray: str) -> None:
    for name in ("train", "test"):
        write_folder(tmp_path / name, {"cat": random_images(2), "dog": random_images(2)})
    path = tmp_path / part / stray
    path.parent.mkdir(exist_ok=True)
    path.write_text("one picture too many")
    named = tmp_path / part / "cat" / "more" if "more" in stray else path
    with pytest.raises(DataError, match=rf"^{named} is not (an image|a folder); "):
        load(DataSettings(name="images", path=str(tmp_path)), Key(0))


def test_image_folder_with_an_unknown_test_class(tmp_path: Path) -> None:
    write_folder(tmp_path / "train", {"cat": random_images(1)})
    write_folder(tmp_path / "test", {"cow": random_images(1)})
    with pytest.raises(DataError, match="'cow' that the training folder lacks"):
        load(DataSettings(name="images", path=str(tmp_path)), Key(0))


def test_a_parquet_folder_tells_test_files_by_their_name(write_parquet: WriteParquet, tmp_path: Path) -> None:
    write_parquet(encode(random_images(4)), [0, 1, 2, 0], file="d/train-0.parquet")
    write_parquet(encode(random_images(2)), [0, 1], file="d/test-0.parquet")
    dataset = load(DataSettings(name="parquet", path=str(tmp_path / "d")), Key(0))
    assert dataset.test is not None
    assert (len(dataset.train), len(dataset.test)) == (4, 2)
    assert dataset.origin == "train-0.parquet, test-0.parquet"


def test_npz_normalisation_is_measured(tmp_path: Path) -> None:
    features = np.random.default_rng(0).normal(3, 2, (50, 4))
    np.savez(tmp_path / "d.npz", x=features, y=np.arange(50) % 2)
    dataset = load(DataSettings(name="npz", path=str(tmp_path / "d.npz")), Key(0))
    np.testing.assert_allclose(dataset.normalisation.mean, features.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(dataset.normalisation.std, features.std(axis=0), rtol=1e-5)
    with pytest.raises(ConfigError, match=r"data\.resize is for images"):
        load(DataSettings(name="npz", path=str(tmp_path / "d.npz"), resize=4), Key(0))


def test_a_test_label_that_training_lacks(tmp_path: Path) -> None:
    inputs = np.ones((2, 3))
    np.savez(tmp_path / "d.npz", x_train=inputs, y_train=np.array([0, 1]), x_test=inputs, y_test=np.array([0, 2]))
    with pytest.raises(DataError, match=r"test examples\), row 1: label 2 is out of range"):
        load(DataSettings(name="npz", path=str(tmp_path / "d.npz")), Key(0))


def test_a_class_without_examples_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path, {"cat": random_images(2), "dog": random_images(0)})
    with pytest.raises(DataError, match=r"no training example has label 1 \(class 'dog'\)"):
        load(DataSettings(name="images", path=str(tmp_path)), Key(0))
