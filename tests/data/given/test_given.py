"""Data from Python: the same bits as from a file, its own identity, and one sentence for whatever cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from fedfuse.core.errors import DataError, FedfuseError
from fedfuse.core.randomness import Key
from fedfuse.data import Dataset, DataSettings, load, split
from fedfuse.data.given import data_section, handed_over, memory

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(60, 4))
Y = np.arange(60) % 3
WORDS = np.array(["ant", "bee", "cat"])[Y]
IMAGES = RANDOM.integers(0, 256, size=(60, 8, 8, 3), dtype=np.uint8)
TEXTS = [f"word{label} and more" for label in Y]


def loaded(data: Any) -> Dataset:
    return load(DataSettings(**data_section(data)), Key(0))


def same(one: Dataset, other: Dataset) -> bool:
    return (
        torch.equal(one.train.inputs, other.train.inputs)
        and torch.equal(one.train.labels, other.train.labels)
        and one.normalisation == other.normalisation
    )


def frame(labels: Any = Y) -> Any:
    return pa.table({**{name: X[:, place] for place, name in enumerate("abcd")}, "label": labels})


@pytest.mark.parametrize(
    "inputs", [X, X.astype(np.float32), IMAGES, np.array(TEXTS)], ids=["f8", "f4", "images", "texts"]
)
def test_arrays_are_read_as_an_npz_file_of_them(tmp_path: Path, inputs: Any) -> None:
    np.savez(tmp_path / "data.npz", x=inputs, y=Y)
    assert same(loaded((inputs, Y)), load(DataSettings(name="npz", path=str(tmp_path / "data.npz")), Key(0)))


@pytest.mark.parametrize(
    "data",
    [
        (torch.tensor(X), torch.tensor(Y)),
        (X.tolist(), Y.tolist()),
        {"train": (X, Y)},
        {"x": X, "y": Y},
        {"inputs": torch.tensor(X), "labels": Y.tolist()},
        {"x_train": X, "y_train": Y},
        [X, Y],
        frame(),
        {"train": frame(pa.array(WORDS).dictionary_encode())},
        (X, WORDS),
        (X, WORDS.tolist()),
        (X, WORDS.astype(object)),
    ],
    ids=str.split(
        "tensors lists by-split x-y inputs-labels x_train list-of-two table categories words list-of-words objects"
    ),
)
def test_the_same_examples_are_the_same_however_they_are_given(data: Any) -> None:
    assert same(loaded(data), loaded((X, Y)))


def test_a_table_is_read_as_a_parquet_file_of_it(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(frame(), tmp_path / "data.parquet")
    assert same(loaded(frame()), load(DataSettings(name="parquet", path=str(tmp_path / "data.parquet")), Key(0)))


def test_a_data_frame_is_a_table_whatever_its_index_is() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=list("abcd"), index=range(100, 160)).assign(label=WORDS)
    assert same(loaded(table), loaded((X, Y)))
    assert loaded(table).class_names == ("ant", "bee", "cat")


def test_a_hugging_face_dataset_brings_its_class_names_and_splits() -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["n", "o", "p"])}
    )
    train = datasets.Dataset.from_dict({"text": TEXTS, "label": Y.tolist()}, features=features)
    given = loaded(datasets.DatasetDict({"train": train, "test": train.select(range(9)), "validation": train}))
    assert same(given, loaded((TEXTS, Y)))
    assert given.class_names == ("n", "o", "p")
    assert given.test is not None
    assert len(given.test) == 9
    assert given.validation is not None


def test_words_and_truth_values_are_numbered_in_their_order_and_keep_their_names() -> None:
    assert loaded((X, WORDS)).class_names == ("ant", "bee", "cat")
    truth = loaded((X, Y == 1))
    assert truth.class_names == ("False", "True")
    assert truth.train.labels.tolist() == (Y == 1).astype(int).tolist()


def test_every_split_that_is_given_is_used_as_it_is() -> None:
    data = {"train": (X, Y), "test": (X[:9], Y[:9]), "validation": (X[9:15], Y[9:15]), "public": X[:20] + 1}
    settings = DataSettings(**data_section(data))
    parts = split(load(settings, Key(0)), settings, Key(0))
    for part, inputs in (
        (parts.train, X),
        (parts.test, X[:9]),
        (parts.validation, X[9:15]),
        (parts.public, X[:20] + 1),
    ):
        assert np.array_equal(part.inputs, inputs.astype(np.float32))


def test_other_keys_of_the_section_stay() -> None:
    section = data_section({"train": (X, Y), "test": 0.5, "public": 0.1})
    assert section == {"name": "arrays", "path": section["path"], "test": 0.5, "public": 0.1}


def test_clients_are_an_array_beside_arrays_and_a_column_of_a_table() -> None:
    owners = np.array(["north", "south"])[Y % 2]
    arrays = loaded({"train": (X, Y), "clients": owners}).train.owners
    table = loaded({"train": frame().append_column("site", pa.array(owners)), "client_column": "site"}).train.owners
    assert arrays is not None
    assert table is not None
    assert arrays.names == table.names == ("north", "south")
    assert torch.equal(arrays.numbers, table.numbers)


CHANGES = {
    "a number": (np.where(np.eye(60, 4, dtype=bool), X + 1e-9, X), Y),
    "a label": (X, np.roll(Y, 1)),
    "the type": (X.astype(np.float32), Y),
    "the shape": (X.reshape(60, 2, 2), Y),
    "a test split": ((X, Y), (X, Y)),
    "clients": {"train": (X, Y), "clients": Y},
    "words": (X, WORDS),
    "other words": (X, np.char.add(WORDS, "s")),
    "a table": frame(),
    "a table of words": frame(pa.array(WORDS)),
    "categories": frame(pa.DictionaryArray.from_arrays(pa.array(Y), ["x", "y", "z"])),
    "other categories": frame(pa.DictionaryArray.from_arrays(pa.array(Y), ["x", "y", "q"])),
    "a column's name": frame().rename_columns([*"abce", "label"]),
}


def test_whatever_differs_has_another_identity() -> None:
    hashes = {what: data_section(data)["path"] for what, data in {"as it is": (X, Y), **CHANGES}.items()}
    assert len(set(hashes.values())) == len(hashes)


def test_what_is_the_same_has_the_same_identity() -> None:
    assert data_section((X, Y)) == data_section((X[::-1][::-1], Y.copy()))
    chunks = pa.concat_tables([frame()[:10], frame()[10:]])
    assert data_section(chunks) == data_section(frame())


def test_an_array_that_was_changed_after_it_was_given_is_refused() -> None:
    mine = X.copy()
    settings = DataSettings(**data_section((mine, Y)))
    mine[0] = 0
    with pytest.raises(DataError, match="were changed after they were given as data; give them again"):
        load(settings, Key(0))


LISTS = pa.table({"features": X.tolist(), "label": pa.array(WORDS).dictionary_encode()})


@pytest.mark.parametrize("data", [(X, WORDS), frame(pa.array(WORDS)), {"train": frame(), "public": frame()}, LISTS])
def test_a_process_that_we_start_reads_the_same(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = DataSettings(**data_section(data))
    expected = load(settings, Key(0))
    with handed_over([str(settings.path)]) as environment, monkeypatch.context() as patch:
        patch.setattr(memory, "_held", {})
        with pytest.raises(DataError, match="give them again"):
            load(settings, Key(0))
        patch.setenv(memory.FOLDER, environment[memory.FOLDER])
        assert same(load(settings, Key(0)), expected)
    assert not Path(environment[memory.FOLDER]).exists()


def with_missing(values: list[Any]) -> Any:
    return frame(pa.array([None, *values[1:]]))


BAD: Mapping[str, tuple[Any, str]] = {
    "NaN": ((np.where(np.eye(60, 4, dtype=bool), np.nan, X), Y), "data.train, row 0: an input is NaN or infinite"),
    "another length": ((X, Y[:-1]), "inputs of shape (60, 4) do not fit 59 labels"),
    "one axis": ((X[:, 0], Y), "inputs of shape (60,) do not fit 60 labels"),
    "empty": ((X[:0], Y[:0]), "data.train is empty"),
    "objects": ((X.astype(object), Y), "data.train, inputs is an array of object"),
    "label objects": ((X, Y.astype(object)), "data.train, labels is an array of object"),
    "no whole labels": ((X, Y / 2), "the labels are float64"),
    "gaps": ((X, 2 * Y), "no training example has label 1"),
    "huge labels": ((X, Y * 10**12), "count labels from 0 without gaps"),
    "beyond 64 bits": ((X, [10**30] * 60), "labels is an array of object"),
    "negative": ((X, -Y), "label -1 is out of range"),
    "a column of labels": ((X, Y[:, None]), "one whole number per example"),
    "complex": ((X + 1j, Y), "inputs is an array of complex128"),
    "ragged": (([[1, 2], [3]], [0, 1]), "its rows differ in length"),
    "a misspelt split": ({"trian": (X, Y)}, "unknown split 'trian' (did you mean 'train'?)"),
    "a misspelt split beside another": ({"train": (X, Y), "tset": (X, Y)}, "unknown split 'tset'"),
    "inputs alone": (X, "data is no pair; give (inputs, labels)"),
    "one of a pair": ((X,), "data is no pair"),
    "training inputs alone": ({"train": X}, "data.train is ndarray; give (inputs, labels)"),
    "no training examples": ({"test": (X, Y)}, "no train"),
    "another shape for testing": ({"train": (X, Y), "test": (X[:, 1:], Y)}, "test inputs shape 3"),
    "unknown words": (
        {"train": (X, WORDS), "test": (X[:1], ["dog"])},
        "has the label 'dog', which no training example",
    ),
    "a table beside arrays": ({"train": (X, Y), "test": frame()}, "data.test is Table; give (inputs, labels)"),
    "arrays beside a table": ({"train": frame(), "test": (X, Y)}, "data.test is tuple; give a table"),
    "no label column": (frame().rename_columns([*"abcd", "kind"]), "set data.label_column to one of"),
    "a missing word": (with_missing(WORDS.tolist()), "row 0: the label is missing"),
    "a missing number": (with_missing(Y.tolist()), "row 0: the label is missing"),
    "a column of names": (
        frame().append_column("name", pa.array([f"patient {row}" for row in range(60)])),
        "column 'name' holds 60 different words, such as 'patient 0'; leave it out with data.ignore_columns: [name]",
    ),
    "words and numbers": (
        frame().append_column("age", pa.array(["7", "?"] * 30)),
        "data.train, column 'age', row 1: '?' is not a number",
    ),
    "clients of a table": ({"train": frame(), "clients": Y}, "data.client_column"),
    "clients too few": ({"train": (X, Y), "clients": Y[:3]}, "one name or whole number for each of the 60"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_read_is_refused_in_one_sentence(case: str) -> None:
    data, sentence = BAD[case]
    with pytest.raises(FedfuseError) as refused:
        loaded(data)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_columns_have_no_meaning_for_arrays() -> None:
    with pytest.raises(ValueError, match=r"data\.label_column has no meaning for data\.name = arrays"):
        loaded({"train": (X, Y), "label_column": "y"})


def test_official_splits_must_have_been_given() -> None:
    settings = DataSettings(**data_section((X, Y)), public="official")
    with pytest.raises(DataError, match="no such examples were given"):
        split(load(settings, Key(0)), settings, Key(0))
    with pytest.raises(ValueError, match="digits has no public split of its own"):
        DataSettings(name="digits", public="official")


def test_data_that_is_no_examples_is_left_alone() -> None:
    for section in ({"name": "digits", "public": 0.2}, "digits", None, 3):
        assert data_section(section) is section


def test_a_file_cannot_name_arrays_that_nobody_gave() -> None:
    with pytest.raises(ValueError, match="is for data that Python gives"):
        DataSettings(name="arrays")


def test_a_test_split_by_the_names_of_an_npz_file() -> None:
    by_name = loaded({"x_train": X, "y_train": Y, "x_test": X[:9], "y_test": Y[:9]})
    assert by_name.test is not None
    assert same(by_name, loaded(((X, Y), (X[:9], Y[:9]))))


def test_a_dataset_of_torch_says_what_to_give() -> None:
    dataset = torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(Y))
    with pytest.raises(DataError, match=r"data is a TensorDataset, which says .* give arrays, \(inputs, labels\)"):
        loaded(dataset)
