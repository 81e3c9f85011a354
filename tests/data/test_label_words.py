"""Labels that are names of classes, where somebody said which number each of them is."""

from __future__ import annotations

import numpy as np
import pytest

from fedfuse.core.errors import DataError
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
