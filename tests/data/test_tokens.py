"""Tokens: numbers that mean the same for everybody, padded at the end and nowhere else."""

from __future__ import annotations

import hashlib
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fedfuse.core.errors import MissingExtraError
from fedfuse.data.tokens import EMPTY, FIRST, Bytes, TextSettings, Words, tokenizer_of

TOKENIZERS = [Words(6, 50, lower=True), Words(6, 3, lower=False), Bytes(6, lower=True)]
each_tokenizer = pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=repr)


@each_tokenizer
@given(texts=st.lists(st.text(max_size=20), min_size=1, max_size=8))
def test_padding_is_at_the_end_and_no_row_is_all_padding(tokenizer, texts):
    rows = tokenizer(texts)
    assert rows.shape == (len(texts), 6)
    assert rows.dtype == np.int32
    assert rows[:, 0].min() > 0
    assert rows.max() < tokenizer.vocabulary
    assert np.array_equal(np.sort(rows != 0, axis=1)[:, ::-1], rows != 0)


@each_tokenizer
def test_a_texts_numbers_do_not_depend_on_the_texts_beside_it(tokenizer):
    texts = ["A good film.", "", "bad, bad!", "Ein Wörtchen"]
    assert np.array_equal(tokenizer(texts), np.concatenate([tokenizer([text]) for text in texts]))


def test_a_words_number_is_its_hash():
    digest = hashlib.blake2b(b"film", digest_size=8).digest()
    expected = 2 + int.from_bytes(digest, "little") % 998
    assert Words(4, 1000, lower=True)(["Film"])[0].tolist() == [expected, 0, 0, 0]


def test_words_are_split_at_spaces_and_signs():
    spaced, tight = Words(16, 10_000, lower=True)(
        ["it ' s a well - made film , señor !", "It's a well-made\tfilm, señor!"]
    )
    assert np.array_equal(spaced, tight)
    assert np.count_nonzero(spaced) == 11


def test_case_counts_if_asked():
    lower, upper = Words(2, 10_000, lower=False)(["film", "Film"])
    assert lower[0] != upper[0]


def test_bytes_are_those_of_utf_8():
    row = Bytes(4, lower=True)(["Aé"])[0]
    assert row.tolist() == [FIRST + 0x61, FIRST + 0xC3, FIRST + 0xA9, 0]


def test_long_texts_are_cut_and_empty_ones_are_not_padding():
    words = Words(2, 10_000, lower=True)
    assert np.array_equal(words(["one two three"]), words(["one two"]))
    assert words([" \n"])[0].tolist() == [EMPTY, 0]


def test_settings_choose_the_tokenizer():
    assert tokenizer_of(TextSettings()) == Words(64, 10_000, lower=True)
    assert tokenizer_of(TextSettings(tokenizer="bytes", max_length=9, lower=False)) == Bytes(9, lower=False)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"tokenizer": "bytes", "vocabulary": 300}, "vocabulary is for words"),
        ({"tokenizer": "bert-base", "lower": False}, "bert-base decides itself"),
        ({"max_length": 0}, "greater than or equal to 1"),
        ({"vocabulary": 2}, "greater than or equal to 3"),
    ],
)
def test_settings_that_mean_nothing(values, sentence):
    with pytest.raises(ValidationError, match=sentence):
        TextSettings(**values)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fedfuse\[text\]'"):
        tokenizer_of(TextSettings(tokenizer="distilbert-base-uncased"))
