from __future__ import annotations

from pathlib import Path

import pytest

from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.data import CATALOGUE, DataSettings, load

from .samples import WriteParquet, encode, random_images

DIGITS = [str(digit) for digit in range(10)]


@pytest.fixture(autouse=True)
def no_shared_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEDFUSE_DATA", raising=False)


@pytest.fixture
def mnist(write_parquet: WriteParquet, tmp_path: Path) -> Path:
    encoded = encode(random_images(10, side=28, channels=1))
    write_parquet(encoded, list(range(10)), DIGITS, "data/mnist-train.parquet")
    write_parquet(encoded[:2], [0, 1], DIGITS, "data/mnist-test.parquet")
    return tmp_path / "data"


def test_path_and_environment_lead_to_the_files(mnist: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_path = load(DataSettings(name="mnist", path=str(mnist)), Key(0))
    monkeypatch.setenv("FEDFUSE_DATA", str(mnist))
    by_environment = load(DataSettings(name="mnist"), Key(0))
    assert by_path.train.inputs.equal(by_environment.train.inputs)
    assert by_path.classes == 10
    assert by_path.normalisation.mean == (0.1307,)


def test_constants_are_measured_when_the_channels_change(mnist: Path) -> None:
    colour = load(DataSettings(name="mnist", path=str(mnist), channels=3), Key(0))
    assert colour.shape == (3, 28, 28)
    assert len(colour.normalisation.mean) == 3


def test_limits_keep_a_random_subset_of_the_same_key(mnist: Path) -> None:
    settings = DataSettings(name="mnist", path=str(mnist), train_limit=2, test_limit=1)
    first, second = load(settings, Key(0)), load(settings, Key(0))
    assert first.test is not None
    assert (len(first.train), len(first.test)) == (2, 1)
    assert first.train.inputs.equal(second.train.inputs)


def test_a_missing_dataset_says_what_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"put cifar10-train\.parquet .*, or cifar-10-batches-bin.* FEDFUSE_DATA"):
        load(DataSettings(name="cifar10"), Key(0))
    with pytest.raises(DataError, match="CIFAR-10 is not in"):
        load(DataSettings(name="cifar10", path=str(tmp_path)), Key(0))


def test_a_missing_test_file(mnist: Path) -> None:
    (mnist / "mnist-test.parquet").unlink()
    with pytest.raises(DataError, match=r"but no mnist-test\*\.parquet"):
        load(DataSettings(name="mnist", path=str(mnist)), Key(0))


def test_a_file_that_is_not_what_its_name_says(write_parquet: WriteParquet, tmp_path: Path) -> None:
    for part in ("train", "test"):
        write_parquet(encode(random_images(2, side=28)), [0, 1], DIGITS, f"cifar10-{part}.parquet")
    with pytest.raises(DataError, match="CIFAR-10 has 3x32x32"):
        load(DataSettings(name="cifar10", path=str(tmp_path)), Key(0))


def test_every_card_has_constants_of_its_channels_and_a_source() -> None:
    for name, card in CATALOGUE.items():
        if card.normalisation is not None:
            assert len(card.normalisation.mean) == len(card.normalisation.std) == card.shape[0], name
        assert card.layouts or name in ("digits", "blobs", "swiss_roll")
