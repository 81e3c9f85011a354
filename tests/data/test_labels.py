"""Labels as numbers: words, truth values, numbers from 0, from 1 or with names that the experiment gives them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.data import Dataset, DataSettings, load
from fedfuse.data.given import data_section
from fedfuse.data.own_files import read_own_files
from fedfuse.data.readers.contents import Reading
from fedfuse.data.readers.labels import Classes, label_numbers

WORDS = (("cat", 1), ("dog", 0))
NUMBERS = (("10", 0), ("20", 1))


@pytest.mark.parametrize("kind", [np.str_, object])
def test_words_become_their_numbers(kind):
    assert label_numbers(np.array(["dog", "cat", "dog"], kind), WORDS, "here").tolist() == [0, 1, 0]


@pytest.mark.parametrize("values", [np.array([20, 10]), np.array([20.0, 10.0]), np.array(["20", "10"])])
def test_numbers_that_are_names(values):
    assert label_numbers(values, NUMBERS, "here").tolist() == [1, 0]


def test_numbers_among_words_count_from_0():
    assert label_numbers(np.array([1, 0]), WORDS, "here").tolist() == [1, 0]


@pytest.mark.parametrize(
    ("values", "words", "reason"),
    [
        (["cat", "cow", "ant"], WORDS, "here, row 1: unknown class 'cow'"),
        ([10, 20, 30], NUMBERS, "here, row 2: unknown class '30'"),
        (np.array(["cat", None], object), WORDS, "here, row 1: the label is missing"),
        (np.array(["None", None], object), (("None", 0), ("cat", 1)), "here, row 1: the label is missing"),
        (np.array([[1], [2, 3], None], object), (), "here, row 2: the label is missing"),
        (np.array([[1], [2, 3]], object), (), "the labels are object"),
        (np.array(["cat", ""]), WORDS, "here, row 1: the label is missing"),
        (np.array([["cat"]]), WORDS, "one whole number per example"),
        (np.array([], np.str_), WORDS, "is empty"),
        (["cat"], (), "row 0: 'cat' is not a number; labels are whole numbers from 0 or words, not both"),
        (["1", "0"], (), "numbers written as words"),
        ([True, False], (), "the labels are bool"),
        ([1.0, np.nan], WORDS, "row 1: the label is missing"),
        ([1.0, 0.5], WORDS, "the labels are float64"),
        ([1e300], (), "the labels are float64"),
    ],
)
def test_what_is_no_label(values, words, reason):
    with pytest.raises(DataError, match=reason):
        label_numbers(np.asarray(values), words, "here")


def test_another_numbering_is_not_taken_from_the_cache(tmp_path):
    (tmp_path / "ours.csv").write_text("a,label\n1,cat\n2,dog\n")
    swapped = (("cat", 0), ("dog", 1))
    for words, expected in ((WORDS, [1, 0]), (swapped, [0, 1]), (WORDS, [1, 0])):
        reading = Reading(classes=Classes(("x", "y"), "words", words))
        found = read_own_files("csv", tmp_path / "ours.csv", None, False, reading)
        assert found.train.labels.tolist() == expected


def of_labels(folder: Any, kind: str, values: list[Any], **more: Any) -> Dataset:
    """The same labels from every place that data can come from."""
    numbers = [float(place) for place in range(len(values))]
    if kind == "csv":
        path = folder / "d.csv"
        path.write_text("a,label\n" + "".join(f"{n},{label}\n" for n, label in zip(numbers, values, strict=True)))
    elif kind == "parquet":
        path = folder / "d.parquet"
        pq.write_table(pa.table({"a": numbers, "label": values}), path)
    elif kind == "jsonl":
        path = folder / "d.jsonl"
        rows = ({"a": number, "label": label} for number, label in zip(numbers, values, strict=True))
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    elif kind == "npz":
        path = folder / "d.npz"
        np.savez(path, x=np.array(numbers)[:, None], y=np.array(values))
    elif kind == "tables":
        section = data_section(pa.table({"a": numbers, "label": values}))
        return load(DataSettings.model_validate({**section, **more}), Key(0))
    else:
        section = data_section((np.array(numbers)[:, None], np.array(values)))
        return load(DataSettings.model_validate({**section, **more}), Key(0))
    return load(DataSettings.model_validate({"name": kind, "path": path, **more}), Key(0))


EVERYWHERE = pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "npz", "tables", "arrays"])


@EVERYWHERE
@pytest.mark.parametrize(
    ("labels", "names", "numbers", "kept"),
    [
        (["malignant", "benign", "malignant"], ("benign", "malignant"), [1, 0, 1], "words"),
        ([True, False, True], ("False", "True"), [1, 0, 1], "truth values"),
        ([3, 1, 2], ("1", "2", "3"), [2, 0, 1], "numbers"),
        ([1, -1, 1], ("-1", "1"), [1, 0, 1], "numbers"),
        ([1.0, 2.0, 1.0], ("1", "2"), [0, 1, 0], "numbers"),
        ([1, 0, 2], ("0", "1", "2"), [1, 0, 2], "words"),
        ([1.0, 0.0, 1.0], ("0", "1"), [1, 0, 1], "words"),
    ],
    ids=["words", "truth values", "from 1", "minus one", "decimals from 1", "from 0", "decimals from 0"],
)
def test_labels_of_every_kind_from_everywhere(tmp_path, kind, labels, names, numbers, kept):
    data = of_labels(tmp_path, kind, labels)
    assert (data.class_names, data.train.labels.tolist(), data.label_kind) == (names, numbers, kept)
    said = [note for note in data.notes if note.startswith("labels: ")]
    counts_from_0 = kept == "words" and labels[0] != "malignant"
    assert said == ([] if counts_from_0 else [f"labels: {kept}, {len(names)} classes: {', '.join(names)}"])


@EVERYWHERE
def test_the_experiment_says_which_class_each_label_is(tmp_path, kind):
    told = {3: "high", 1: "low", 2: "low"}
    data = of_labels(tmp_path, kind, [1, 3, 2], labels=told)
    assert (data.class_names, data.train.labels.tolist()) == (("low", "high"), [0, 1, 0])
    truth = of_labels(tmp_path, kind, [True, False, True], labels={"true": "ill", "false": "well"})
    assert [truth.class_names[label] for label in truth.train.labels] == ["ill", "well", "ill"]
    words = of_labels(tmp_path, kind, ["B", "M", "B"], labels={"B": "benign", "M": "malignant"})
    assert (words.class_names, words.train.labels.tolist()) == (("benign", "malignant"), [0, 1, 0])
    with pytest.raises(DataError, match=r"row 1( \(line 3\))?: unknown class '7' \(known: 1, 2, 3\)"):
        of_labels(tmp_path, kind, [1, 7], labels=told)


@EVERYWHERE
@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([0, 3, 1, 0], r"no training example has label 2 .* or say in data\.labels"),
        ([0, 10**12, 1], r"count labels from 0 without gaps, or say in data\.labels"),
        ([0.5, 1.0, 0.0], "labels are float64"),
        ([f"name{n}" for n in range(1001)], "more than 1000 different words as labels, such as 'name0'"),
    ],
    ids=["a gap", "huge", "no whole number", "names"],
)
def test_what_is_no_class(tmp_path, kind, labels, reason):
    with pytest.raises(DataError, match=reason):
        of_labels(tmp_path, kind, labels)


def load_table(path, **more):
    return load(DataSettings(name=path.suffix[1:], path=str(path), label_column="finding", **more), Key(0))


FINDINGS = "a,finding\n1,malignant\n2,benign\n3,malignant\n"


class TestFiles:
    """Classes are those of the training files together."""

    def test_test_files_are_numbered_alike(self, tmp_path):
        (tmp_path / "train.csv").write_text(FINDINGS)
        (tmp_path / "test.csv").write_text("a,finding\n9,malignant\n")
        data = load_table(tmp_path / "train.csv", test_path=str(tmp_path / "test.csv"))
        assert (data.class_names, data.test.labels.tolist()) == (("benign", "malignant"), [1])

    @pytest.mark.parametrize("kind", ["csv", "npz"])
    def test_files_of_clients_need_not_have_every_class(self, tmp_path, kind):
        for client, finding in (("a", "malignant"), ("b", "benign")):
            if kind == "csv":
                (tmp_path / f"{client}.csv").write_text(f"a,label\n1,{finding}\n")
            else:
                np.savez(tmp_path / client, x=np.ones((1, 2)), y=np.array([finding]))
        data = load(DataSettings(name=kind, path=str(tmp_path), client_files=True), Key(0))
        assert (data.class_names, data.train.labels.tolist()) == (("benign", "malignant"), [1, 0])

    @pytest.mark.parametrize(
        ("rows", "reason"),
        [
            ("1,0\n2,1\n3,?\n", r"common\.csv, column 'finding', row 2 \(line 4\): '\?' is not a number; labels are"),
            ("1,cat\n2,\n", r"row 1 \(line 3\): the label is missing"),
        ],
        ids=["a word among numbers", "a gap"],
    )
    def test_what_is_no_class(self, tmp_path, rows, reason):
        (tmp_path / "common.csv").write_text(f"a,finding\n{rows}")
        with pytest.raises(DataError, match=reason):
            load_table(tmp_path / "common.csv")

    def test_a_word_among_numbers_that_the_experiment_knows(self, tmp_path):
        (tmp_path / "common.csv").write_text("a,finding\n1,0\n2,1\n3,?\n")
        told = {"0": "well", "1": "ill", "?": "unclear"}
        data = load_table(tmp_path / "common.csv", labels=told)
        assert sorted(data.class_names) == ["ill", "unclear", "well"]
        assert [data.class_names[label] for label in data.train.labels] == ["well", "ill", "unclear"]

    def test_a_test_file_with_another_word(self, tmp_path):
        (tmp_path / "train.csv").write_text(FINDINGS)
        (tmp_path / "test.csv").write_text("a,finding\n9,unclear\n")
        with pytest.raises(DataError, match=r"test\.csv, column 'finding', row 0 \(line 2\): unknown class 'unclear'"):
            load_table(tmp_path / "train.csv", test_path=str(tmp_path / "test.csv"))

    def test_names_in_the_metadata_count_before_numbers_from_1(self, write_parquet):
        from .samples import encode, random_images

        path = write_parquet(encode(random_images(3)), [1, 2, 1], names=("a", "b", "c"))
        with pytest.raises(DataError, match=r"no training example has label 0 \(class 'a'\)"):
            load(DataSettings(name="parquet", path=str(path)), Key(0))
