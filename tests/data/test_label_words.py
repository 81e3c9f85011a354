"""Labels that are names of classes, where somebody said which number each of them is, and where nobody did."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.data import DataSettings, load
from fedfuse.data.own_files import read_own_files
from fedfuse.data.readers.contents import Reading, label_numbers

WORDS = Reading(words=(("cat", 1), ("dog", 0)))
NUMBERS = Reading(words=(("10", 0), ("20", 1)))


@pytest.mark.parametrize("kind", [np.str_, object])
def test_words_become_their_numbers(kind):
    assert label_numbers(np.array(["dog", "cat", "dog"], kind), WORDS, "here").tolist() == [0, 1, 0]


def test_numbers_that_are_names():
    assert label_numbers(np.array([20, 10]), NUMBERS, "here").tolist() == [1, 0]


def test_numbers_among_words_count_from_0():
    assert label_numbers(np.array([1, 0]), WORDS, "here").tolist() == [1, 0]


@pytest.mark.parametrize(
    ("values", "reading", "reason"),
    [
        (["cat", "cow", "ant"], WORDS, "here, row 1: unknown class 'cow'"),
        ([10, 20, 30], NUMBERS, "here, row 2: unknown class '30'"),
        (np.array(["cat", None], object), WORDS, "here, row 1: the label is missing"),
        (np.array([["cat"]]), WORDS, "one whole number per example"),
        (np.array([], np.str_), WORDS, "is empty"),
        (["cat"], Reading(), "one whole number per example"),
        ([1.0, np.nan], WORDS, "row 1: the label is missing"),
    ],
)
def test_what_is_no_label(values, reading, reason):
    with pytest.raises(DataError, match=reason):
        label_numbers(np.asarray(values), reading, "here")


def test_another_numbering_is_not_taken_from_the_cache(tmp_path):
    (tmp_path / "ours.csv").write_text("a,label\n1,cat\n2,dog\n")
    swapped = Reading(words=(("cat", 0), ("dog", 1)))
    for reading, expected in ((WORDS, [1, 0]), (swapped, [0, 1]), (WORDS, [1, 0])):
        found = read_own_files("csv", tmp_path / "ours.csv", None, False, reading)
        assert found.train.labels.tolist() == expected


CATS = "a,finding\n1,malignant\n2,benign\n3,malignant\n"


def load_table(path, **more):
    return load(DataSettings(name=path.suffix[1:], path=str(path), label_column="finding", **more), Key(0))


def as_parquet(path):
    pq.write_table(pa.table({"a": [1.0, 2.0, 3.0], "finding": ["malignant", "benign", "malignant"]}), path)
    return path


class TestOfAnExperiment:
    """Nobody said which number each word is: they are numbered in alphabetical order."""

    def test_words_are_classes(self, tmp_path):
        (tmp_path / "common.csv").write_text(CATS)
        for path in (tmp_path / "common.csv", as_parquet(tmp_path / "common.parquet")):
            data = load_table(path)
            assert data.class_names == ("benign", "malignant")
            assert data.train.labels.tolist() == [1, 0, 1]
            assert data.train.inputs.flatten().tolist() == [1, 2, 3]

    def test_test_files_are_numbered_alike(self, tmp_path):
        (tmp_path / "train.csv").write_text(CATS)
        (tmp_path / "test.csv").write_text("a,finding\n9,malignant\n")
        data = load_table(tmp_path / "train.csv", test_path=str(tmp_path / "test.csv"))
        assert (data.class_names, data.test.labels.tolist()) == (("benign", "malignant"), [1])

    def test_files_of_clients_need_not_have_every_class(self, tmp_path):
        (tmp_path / "a.csv").write_text("a,finding\n1,malignant\n")
        (tmp_path / "b.csv").write_text("a,finding\n2,benign\n")
        path = str(tmp_path)
        data = load(DataSettings(name="csv", path=path, label_column="finding", client_files=True), Key(0))
        assert data.train.labels.tolist() == [1, 0]

    @pytest.mark.parametrize(
        ("rows", "reason"),
        [
            ("1,0\n2,1\n3,?\n", r"common\.csv, column 'finding', row 2: '\?' is not a number"),
            ("1,cat\n2,\n", "row 1: unknown class ''"),
            ("".join(f"{n},name{n}\n" for n in range(1001)), "more than 1000 different words .* such as 'name0'"),
        ],
        ids=["a word among numbers", "a gap", "names"],
    )
    def test_what_is_no_class(self, tmp_path, rows, reason):
        (tmp_path / "common.csv").write_text(f"a,finding\n{rows}")
        with pytest.raises(DataError, match=reason):
            load_table(tmp_path / "common.csv")

    def test_a_test_file_with_another_word(self, tmp_path):
        (tmp_path / "train.csv").write_text(CATS)
        (tmp_path / "test.csv").write_text("a,finding\n9,unclear\n")
        with pytest.raises(DataError, match=r"test\.csv, column 'finding', row 0: unknown class 'unclear'"):
            load_table(tmp_path / "train.csv", test_path=str(tmp_path / "test.csv"))
