"""Words in columns: nothing is lost, nothing is cut, and lines are as wide as they may be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fedfuse.cli.columns import LEAST, cells, in_columns, wrapped

WORD = st.text("abcdefgh-_./", min_size=1, max_size=LEAST - 1)
SENTENCE = st.lists(WORD, max_size=25).map(" ".join)


@given(st.lists(st.tuples(WORD, SENTENCE, WORD, SENTENCE), min_size=1, max_size=8), st.integers(80, 140))
def test_every_word_is_there_and_no_line_is_too_long(rows: list[tuple[str, ...]], width: int) -> None:
    lines = in_columns(rows, width, wrapping=(1, 3), indent=" ")
    assert sorted(" ".join(lines).split()) == sorted(word for row in rows for cell in row for word in cell.split())
    assert max(map(len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)


@given(SENTENCE, st.integers(20, 100))
def test_a_sentence_goes_on_between_words(text: str, width: int) -> None:
    lines = wrapped(text, width, "  ")
    assert " ".join(lines).split() == text.split()
    assert all(line.startswith("  ") for line in lines)
    assert all(len(line) <= width for line in lines)


def test_a_word_that_is_longer_than_its_column_stays_whole() -> None:
    address = "method.fuse.distiller.optimizer.learning_rate"
    assert address in "\n".join(in_columns([("x", address), ("y", "short")], 20))


def test_numbers_stand_to_the_right_and_columns_where_they_began() -> None:
    rows = [("name", "size"), ("mlp", "197,322"), ("cnn1", "12")]
    assert in_columns(rows, 80, wrapping=(), right=(-1,)) == ["name     size", "mlp   197,322", "cnn1       12"]


def test_letters_that_take_two_places_count_as_two() -> None:
    first, second = in_columns([("数字", "x"), ("abcd", "y")], 80)
    assert cells(first.partition("x")[0]) == cells(second.partition("y")[0])


def test_nothing_gives_nothing() -> None:
    assert in_columns([], 80) == []
    assert wrapped("", 80) == []
