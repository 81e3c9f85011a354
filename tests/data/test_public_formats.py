"""The original public formats of the image sets, as small files of the same format."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.data import Dataset, DataSettings, load
from fedfuse.data.readers import Reading
from fedfuse.data.readers.imagenet32 import read_imagenet32
from fedfuse.data.readers.matlab import read_matlab

from .samples import encode, random_images


def read(name: str, path: Path, **settings: object) -> Dataset:
    return load(DataSettings.model_validate({"name": name, "path": str(path), **settings}), Key(0))


def check(dataset: Dataset, images: np.ndarray, labels: np.ndarray) -> None:
    np.testing.assert_array_equal(dataset.train.inputs.numpy(), images)
    np.testing.assert_array_equal(dataset.train.labels.numpy(), labels)
    assert dataset.test is not None
    np.testing.assert_array_equal(dataset.test.inputs.numpy(), images[:1])
    np.testing.assert_array_equal(dataset.test.labels.numpy(), labels[:1])


def write_idx(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = struct.pack(f">{1 + array.ndim}I", 0x800 + array.ndim, *array.shape) + array.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_mnist(folder: Path, images: np.ndarray, labels: np.ndarray, suffix: str = ".gz", prefix: str = "") -> None:
    """Train and test files; the test split is the first example."""
    test = "test" if prefix else "t10k"
    for part, many in (("train", len(images)), (test, 1)):
        write_idx(folder / f"{prefix}{part}-images-idx3-ubyte{suffix}", images[:many, 0])
        write_idx(folder / f"{prefix}{part}-labels-idx1-ubyte{suffix}", labels[:many].astype(np.uint8))


PLACES = [("mnist", "MNIST/raw"), ("mnist", ""), ("fashion_mnist", "fashion-mnist")]


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "folder"), [("mnist", "MNIST/raw"), ("mnist", ""), ("fashion_mnist", "fashion-mnist")]
)
def test_idx(tmp_path: Path, name: str, folder: str, suffix: str) -> None:
    images, labels = random_images(20, side=28, channels=1), np.arange(20) % 10
    write_mnist(tmp_path / folder, images, labels, suffix)
    check(read(name, tmp_path), images, labels)


def test_mnist_and_fashion_mnist_are_told_apart_by_their_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = np.arange(10)
    for seed, folder in enumerate(("mnist", "fashion-mnist")):
        write_mnist(tmp_path / folder, random_images(10, 28, 1, seed), labels)
    monkeypatch.setenv("FEDFUSE_DATA", str(tmp_path))
    for seed, name in enumerate(("mnist", "fashion_mnist")):
        check(load(DataSettings(name=name), Key(0)), random_images(10, 28, 1, seed), labels)


def test_emnist_letters_lie_on_their_side_and_count_from_one(tmp_path: Path) -> None:
    images, labels = random_images(52, side=28, channels=1), np.arange(52) % 26
    write_mnist(tmp_path, images.transpose(0, 1, 3, 2), labels + 1, prefix="emnist-letters-")
    dataset = read("emnist_letters", tmp_path)
    check(dataset, images, labels)
    assert dataset.class_names[:3] == ("a", "b", "c")
    write_mnist(tmp_path, images, labels, prefix="emnist-letters-")
    with pytest.raises(DataError, match=r"labels-idx1-ubyte\.gz, row 0: label 0 .* classes are 1\.\.26"):
        read("emnist_letters", tmp_path)


def test_cifar_binary(tmp_path: Path) -> None:
    images, labels = random_images(20, side=32), np.arange(20) % 10
    records = np.concatenate([labels[:, None].astype(np.uint8), images.reshape(20, -1)], axis=1)
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    records[:15].tofile(folder / "data_batch_1.bin")
    records[15:].tofile(folder / "data_batch_2.bin")
    records[:1].tofile(folder / "test_batch.bin")
    check(read("cifar10", tmp_path), images, labels)
    records[17, 0] = 10
    records[15:].tofile(folder / "data_batch_2.bin")
    with pytest.raises(DataError, match=r"data_batch_2\.bin, row 2: label 10 is out of range"):
        read("cifar10", tmp_path)


def test_cifar100_binary_has_the_fine_label_second(tmp_path: Path) -> None:
    images, labels = random_images(100, side=32), np.arange(100)
    coarse = np.full((100, 1), 19)
    records = np.concatenate([coarse, labels[:, None], images.reshape(100, -1)], axis=1).astype(np.uint8)
    records.tofile(tmp_path / "train.bin")
    records[:1].tofile(tmp_path / "test.bin")
    check(read("cifar100", tmp_path), images, labels)


def test_the_pickled_cifar_is_never_opened(tmp_path: Path) -> None:
    (tmp_path / "cifar-10-batches-py").mkdir()
    (tmp_path / "cifar-10-batches-py" / "data_batch_1").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    with pytest.raises(DataError, match="cifar-10-batches-py is pickled, which is never opened, so take the binary"):
        read("cifar10", tmp_path)


def test_svhn_calls_zero_ten(tmp_path: Path) -> None:
    images, labels = random_images(20, side=32), np.arange(20) % 10
    stored = np.where(labels == 0, 10, labels)[:, None]
    savemat(tmp_path / "train_32x32.mat", {"X": images.transpose(2, 3, 1, 0), "y": stored})
    savemat(tmp_path / "test_32x32.mat", {"X": images[:1].transpose(2, 3, 1, 0), "y": stored[:1]})
    check(read("svhn", tmp_path), images, labels)
    savemat(tmp_path / "train_32x32.mat", {"X": images.transpose(2, 3, 1, 0), "y": labels[:, None]})
    with pytest.raises(DataError, match=r"train_32x32\.mat, row 0: label 0 is out of range; 10 classes are 1\.\.10"):
        read("svhn", tmp_path)
    savemat(tmp_path / "train_32x32.mat", {"X": images.transpose(2, 3, 1, 0) / 255, "y": stored})
    with pytest.raises(DataError, match="images are float64"):
        read("svhn", tmp_path)


def test_stl10_is_stored_column_by_column(tmp_path: Path) -> None:
    images, labels = random_images(10, side=96), np.arange(10)
    for part, many in (("train", 10), ("test", 1)):
        np.ascontiguousarray(images[:many].transpose(0, 1, 3, 2)).tofile(tmp_path / f"{part}_X.bin")
        (labels[:many] + 1).astype(np.uint8).tofile(tmp_path / f"{part}_y.bin")
    check(read("stl10", tmp_path), images, labels)


def test_stl10_without_labels_is_a_source_of_one_class(tmp_path: Path) -> None:
    images = random_images(4, side=96)
    np.ascontiguousarray(images.transpose(0, 1, 3, 2)).tofile(tmp_path / "unlabeled_X.bin")
    dataset = read("stl10_unlabelled", tmp_path, resize=32)
    assert (dataset.classes, dataset.test) == (1, None)
    boxes = images.reshape(4, 3, 32, 3, 32, 3).mean(axis=(3, 5))
    assert np.abs(dataset.train.inputs.numpy() - boxes).max() <= 1


def write_tiny_imagenet(folder: Path, images: np.ndarray, wnids: list[str]) -> None:
    """One image per class, written as PNG bytes under the original names."""
    (folder / "val" / "images").mkdir(parents=True)
    (folder / "wnids.txt").write_text("\n".join(reversed(wnids)))
    for wnid, data in zip(wnids, encode(images), strict=True):
        (folder / "train" / wnid / "images").mkdir(parents=True)
        (folder / "train" / wnid / "images" / f"{wnid}_0.JPEG").write_bytes(data)
    (folder / "val" / "images" / "val_0.JPEG").write_bytes(encode(images[:1])[0])
    (folder / "val" / "val_annotations.txt").write_text(f"val_0.JPEG\t{wnids[0]}\t0\t0\t62\t62\n")


def test_tiny_imagenet_folder(tmp_path: Path) -> None:
    images, wnids = random_images(200, side=64), [f"n{number:08}" for number in range(200)]
    folder = tmp_path / "tiny-imagenet-200"
    write_tiny_imagenet(folder, images, wnids)
    for path in (tmp_path, folder):
        dataset = read("tiny_imagenet", path)
        check(dataset, images, np.arange(200))
        assert dataset.class_names == tuple(wnids)
    (folder / "val" / "val_annotations.txt").write_text("val_0.JPEG\tn1\t0\t0\t62\t62\n")
    with pytest.raises(DataError, match=r"val_annotations\.txt, row 0: 'n1' is not a class"):
        read("tiny_imagenet", tmp_path)
    (folder / "wnids.txt").unlink()
    with pytest.raises(DataError, match="unpack tiny-imagenet-200"):
        read("tiny_imagenet", tmp_path)


def test_imagenet32_counts_from_one_over_several_files(tmp_path: Path) -> None:
    images, labels = random_images(1000, side=32), np.arange(1000)
    flat = images.reshape(1000, -1)
    np.savez(tmp_path / "train_data_batch_1.npz", data=flat[:600], labels=labels[:600] + 1, mean=flat[0])
    np.savez(tmp_path / "train_data_batch_2.npz", data=flat[600:], labels=labels[600:] + 1)
    np.savez(tmp_path / "val_data.npz", data=flat[:1], labels=labels[:1] + 1)
    check(read("imagenet32", tmp_path), images, labels)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"data": np.zeros((1, 3072), np.uint8), "labels": np.array([0])}, "row 0: label 0 is out of range"),
        ({"data": np.zeros((1, 3071), np.uint8), "labels": np.array([1])}, "does not hold data of N x 3072"),
        ({"data": np.zeros((1, 3072)), "labels": np.array([1])}, "images are float64"),
        ({"data": np.array([{}]), "labels": np.array([1])}, "cannot be read as an npz archive of plain arrays"),
    ],
)
def test_bad_imagenet32(tmp_path: Path, arrays: dict[str, np.ndarray], sentence: str) -> None:
    np.savez(tmp_path / "b.npz", **arrays)
    with pytest.raises(DataError, match=sentence):
        read_imagenet32([tmp_path / "b.npz"], Reading())


def _small_mnist(folder: Path) -> None:
    write_mnist(folder, random_images(10, side=28, channels=1), np.arange(10))


def _small_cifar(folder: Path) -> None:
    for name in ("data_batch_1.bin", "test_batch.bin"):
        np.zeros(2 * 3073, np.uint8).tofile(folder / name)


def _small_svhn(folder: Path) -> None:
    for name in ("train_32x32.mat", "test_32x32.mat"):
        savemat(folder / name, {"X": np.zeros((32, 32, 3, 9), np.uint8), "y": np.ones((9, 1))}, do_compression=True)


def _small_stl10(folder: Path) -> None:
    for name in ("train", "test"):
        np.zeros(2 * 3 * 96 * 96, np.uint8).tofile(folder / f"{name}_X.bin")
        np.ones(2, np.uint8).tofile(folder / f"{name}_y.bin")


@pytest.mark.parametrize("left", [0.0, 0.6])
@pytest.mark.parametrize(
    ("name", "write", "file"),
    [
        ("mnist", _small_mnist, "train-images-idx3-ubyte.gz"),
        ("mnist", _small_mnist, "train-labels-idx1-ubyte.gz"),
        ("cifar10", _small_cifar, "data_batch_1.bin"),
        ("svhn", _small_svhn, "train_32x32.mat"),
        ("stl10", _small_stl10, "train_X.bin"),
        ("stl10", _small_stl10, "train_y.bin"),
    ],
)
def test_cut_off_files_are_named(
    tmp_path: Path, name: str, write: Callable[[Path], None], file: str, left: float
) -> None:
    write(tmp_path)
    content = (tmp_path / file).read_bytes()
    (tmp_path / file).write_bytes(content[: int(left * len(content))])
    with pytest.raises(DataError, match=file):
        read(name, tmp_path)


def test_idx_of_another_kind_and_missing_labels(tmp_path: Path) -> None:
    _small_mnist(tmp_path)
    images = tmp_path / "train-images-idx3-ubyte.gz"
    write_idx(images, np.zeros((10, 784), np.uint8))
    with pytest.raises(DataError, match="no IDX file of bytes with 3 axes"):
        read("mnist", tmp_path)
    write_idx(images, np.zeros((9, 28, 28), np.uint8))
    with pytest.raises(DataError, match="holds 9 images, but train-labels-idx1-ubyte"):
        read("mnist", tmp_path)
    (tmp_path / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataError, match="put train-labels-idx1-ubyte"):
        read("mnist", tmp_path)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8", "i8", "u8"])
def test_matlab_files_are_read_as_scipy_reads_them(tmp_path: Path, packed: bool, kind: str) -> None:
    random = np.random.default_rng(0)
    arrays = {
        "X": random.integers(0, 100, (3, 4, 2, 5)).astype(kind),
        "y": random.integers(0, 100, (5, 1)).astype(kind),
        "a_longer_name": np.ones((1, 1), kind),
        "empty": np.zeros((0, 3), kind),
    }
    savemat(tmp_path / "m.mat", {**arrays, "words": "left out"}, do_compression=packed)
    found, expected = read_matlab(tmp_path / "m.mat"), loadmat(tmp_path / "m.mat")
    assert found.keys() == arrays.keys()
    for name in arrays:
        np.testing.assert_array_equal(found[name], expected[name])
        assert found[name].dtype == expected[name].dtype
