from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.data import Dataset, DataSettings, Examples, Normalisation, Splits, split


def numbered(count: int, official: bool = False) -> Dataset:
    """Examples that carry their own position."""

    def examples(start: int, size: int) -> Examples:
        return Examples(torch.arange(start, start + size).float()[:, None], torch.zeros(size, dtype=torch.long))

    test = examples(count, 3) if official else None
    return Dataset("d", examples(0, count), test, ("a",), Normalisation((0.0,), (1.0,)), "here")


def attempt(dataset: Dataset, settings: DataSettings, key: Key) -> tuple[Splits | None, str]:
    """The splits, or the sentence that refused them."""
    try:
        return split(dataset, settings, key), ""
    except ConfigError as error:
        return None, str(error)


shares = st.one_of(st.integers(0, 20), st.floats(0, 0.4))


@given(count=st.integers(10, 200), official=st.booleans(), test=shares, validation=shares, public=shares)
def test_splits_are_disjoint_complete_and_of_the_asked_sizes(
    count: int, official: bool, test: float, validation: float, public: float
) -> None:
    settings = DataSettings(name="digits", test=test, validation=validation, public=public)
    splits, refusal = attempt(numbered(count, official), settings, Key(3))
    assert splits is not None or any(f"data.{key} " in refusal for key in ("test", "validation", "public"))
    assume(splits is not None)
    parts = [splits.train, splits.validation, splits.public, splits.test]
    everything = np.concatenate([part.inputs[:, 0].numpy() for part in parts])
    assert sorted(everything) == list(range(count + (3 if official else 0)))
    training = count if official else count - len(splits.test)
    for part, wanted in ((splits.validation, validation), (splits.public, public)):
        assert len(part) == (wanted if isinstance(wanted, int) else round(wanted * training))
    np.testing.assert_array_equal(splits.indices.public, splits.public.inputs[:, 0].numpy())
    assert (splits.indices.test is None) == official


def test_the_same_key_gives_the_same_split_and_test_does_not_depend_on_the_rest() -> None:
    first = split(numbered(100), DataSettings(name="digits"), Key(0))
    again = split(numbered(100), DataSettings(name="digits"), Key(0))
    other = split(numbered(100), DataSettings(name="digits", public=30), Key(0))
    elsewhere = split(numbered(100), DataSettings(name="digits"), Key(1))
    assert first.train.inputs.equal(again.train.inputs)
    assert first.test.inputs.equal(other.test.inputs)
    assert first.validation.inputs.equal(other.validation.inputs)
    assert not first.test.inputs.equal(elsewhere.test.inputs)


@pytest.mark.parametrize(
    ("sizes", "key"),
    [
        ({"test": 0}, "data.test is 0"),
        ({"test": 100}, "data.test = 100 asks for 100 of 100"),
        ({"validation": 0.001}, "data.validation = 0.001 asks for 0 of 80"),
        ({"public": 500}, "data.public = 500"),
        ({"validation": 0.5, "public": 0.5}, "take 80 of 80 training examples"),
    ],
)
def test_impossible_sizes(sizes: dict[str, float], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        split(numbered(100), DataSettings.model_validate({"name": "digits", **sizes}), Key(0))


def test_in_order_public_examples_come_first_and_validation_last() -> None:
    settings = DataSettings(name="digits", split="in_order", public=4, validation=3)
    parts = split(numbered(10, official=True), settings, Key(0)).indices
    assert (parts.public.tolist(), parts.train.tolist(), parts.validation.tolist()) == (
        [0, 1, 2, 3],
        [4, 5, 6],
        [7, 8, 9],
    )


def test_in_order_a_test_split_is_taken_from_the_very_end_whatever_the_seed() -> None:
    settings = DataSettings(name="digits", split="in_order", public=2, validation=2, test=3)
    one, other = (split(numbered(10), settings, Key(seed)).indices for seed in (1, 2))
    assert one.test is not None
    assert (one.public.tolist(), one.train.tolist(), one.validation.tolist()) == ([0, 1], [2, 3, 4], [5, 6])
    assert one.test.tolist() == [7, 8, 9]
    assert other.test is not None
    assert other.test.tolist() == [7, 8, 9]
