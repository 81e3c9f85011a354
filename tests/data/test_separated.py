"""Data that comes already separated: a column, or one file or folder per client."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.data import Dataset, DataSettings, load

from .samples import encode, random_images


def loaded(**settings: object) -> Dataset:
    return load(DataSettings.model_validate(settings), Key(0))


def owners(dataset: Dataset) -> list[str]:
    assert dataset.train.owners is not None
    return [dataset.train.owners.names[number] for number in dataset.train.owners.numbers.tolist()]


def test_a_client_column_is_no_feature(tmp_path: Path) -> None:
    table = pa.table({"a": [1.0, 2.0, 3.0], "client": [10, 2, 10], "label": [0, 1, 0]})
    pq.write_table(table, tmp_path / "train.parquet")
    for _ in range(2):  # from the file, then from the cache
        dataset = loaded(name="parquet", path=str(tmp_path / "train.parquet"), client_column="client")
        assert owners(dataset) == ["10", "2", "10"]
        assert dataset.train.owners is not None
        assert dataset.train.owners.names == ("2", "10")
        assert dataset.shape == (1,)


def test_a_test_file_need_not_know_clients(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1.0, 2.0], "client": ["x", "y"], "label": [0, 1]}), tmp_path / "train.parquet")
    pq.write_table(pa.table({"a": [1.0], "label": [0]}), tmp_path / "test.parquet")
    dataset = loaded(name="parquet", path=str(tmp_path), client_column="client")
    assert dataset.test is not None
    assert dataset.test.owners is None


def test_a_missing_column_or_client(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1.0, 2.0], "client": ["x", None], "label": [0, 1]}), tmp_path / "d.parquet")
    with pytest.raises(DataError, match=r"d\.parquet, row 1: the client is missing"):
        loaded(name="parquet", path=str(tmp_path / "d.parquet"), client_column="client")
    with pytest.raises(DataError, match="has no column 'writer'"):
        loaded(name="parquet", path=str(tmp_path / "d.parquet"), client_column="writer")


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_a_file_per_client(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "clients"
    folder.mkdir()
    for client, count in (("bob", 2), ("ann", 3)):
        inputs, labels = np.arange(count, dtype=float), np.arange(count) % 2
        if kind == "npz":
            np.savez(folder / client, x=inputs[:, None], y=labels)
        elif kind == "csv":
            lines = [f"{x},{y}" for x, y in zip(inputs, labels, strict=True)]
            (folder / f"{client}.csv").write_text("\n".join(["a,label", *lines]))
        else:
            pq.write_table(pa.table({"a": inputs, "label": labels}), folder / f"{client}.parquet")
    dataset = loaded(name=kind, path=str(folder), client_files=True)
    assert owners(dataset) == ["ann"] * 3 + ["bob"] * 2
    assert dataset.train.inputs[:, 0].tolist() == [0, 1, 2, 0, 1]
    assert dataset.test is None
    with pytest.raises(DataError, match="is not a folder"):
        loaded(name=kind, path=str(next(folder.iterdir())), client_files=True)


def test_test_examples_inside_client_files_are_pooled(tmp_path: Path) -> None:
    for client in ("ann", "bob"):
        x, y = np.ones((2, 1)), np.array([0, 1])
        np.savez(tmp_path / client, x_train=x, y_train=y, x_test=x[:1], y_test=y[:1])
    dataset = loaded(name="npz", path=str(tmp_path), client_files=True)
    assert dataset.test is not None
    assert len(dataset.test) == 2


def test_a_folder_of_images_per_client(tmp_path: Path) -> None:
    images = random_images(4)
    for number, place in enumerate(("ann/cat", "ann/dog", "bob/cow", "bob/dog")):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "0.png").write_bytes(encode(images)[number])
    dataset = loaded(name="images", path=str(tmp_path), client_files=True)
    assert dataset.class_names == ("cat", "cow", "dog")
    assert dataset.train.labels.tolist() == [0, 2, 1, 2]
    assert owners(dataset) == ["ann", "ann", "bob", "bob"]
    np.testing.assert_array_equal(dataset.train.inputs.numpy(), images)
