from __future__ import annotations

import socket
import sys
from pathlib import Path

import numpy as np
import pytest

from fedfuse.core.errors import DataError, MissingExtraError
from fedfuse.core.randomness import Key
from fedfuse.data import DataSettings, load

from .samples import WriteParquet, encode, random_images


@pytest.fixture(autouse=True)
def own_hub_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path_factory.mktemp("hub")))


def test_a_local_folder_in_the_layout_of_the_hub(write_parquet: WriteParquet, tmp_path: Path) -> None:
    images = random_images(6)
    write_parquet(encode(images[:4]), [0, 1, 2, 0], file="repository/train-00000-of-00001.parquet")
    write_parquet(encode(images[4:]), [2, 1], file="repository/test-00000-of-00001.parquet")
    for _ in range(2):
        dataset = load(DataSettings(name=f"hf:{tmp_path / 'repository'}"), Key(0))
        np.testing.assert_array_equal(dataset.train.inputs.numpy(), images[:4])
        assert dataset.test is not None
        np.testing.assert_array_equal(dataset.test.inputs.numpy(), images[4:])
        assert dataset.test.labels.tolist() == [2, 1]
        assert dataset.class_names == ("a", "b", "c")


def test_a_folder_that_holds_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="could not be loaded"):
        load(DataSettings(name=f"hf:{tmp_path}"), Key(0))


def test_without_a_network_it_is_one_sentence_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_: object) -> None:
        raise socket.gaierror("no network")

    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    for variable in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("fedfuse.data.hub.getproxies", dict)
    with pytest.raises(DataError, match="the Hugging Face hub cannot be reached"):
        load(DataSettings(name="hf:someone/something"), Key(0))


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"fedfuse\[hub\]"):
        load(DataSettings(name="hf:someone/something"), Key(0))
