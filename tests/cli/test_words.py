"""Words of a command line."""

from __future__ import annotations

import pytest

from fedfuse.cli.words import seeds_of
from fedfuse.core.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("0,1,2", [0, 1, 2]), ("0-4", [0, 1, 2, 3, 4]), ("0-2,7", [0, 1, 2, 7]), (" 3 - 4 , 1 ", [3, 4, 1]), ("5-5", [5])],
)
def test_seeds_one_by_one_and_in_ranges(text: str, seeds: list[int]) -> None:
    assert seeds_of(text) == seeds


@pytest.mark.parametrize(
    "text", ["", ",", "0,0", "0-2,1", "4-0", "a", "0-", "-1", "1-2-3", "0..3", "1.5", "0-99999999", "9" * 9999, "²"]
)
def test_what_is_no_list_of_seeds_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^seeds=") as refused:
        seeds_of(text)
    assert len(str(refused.value)) < 250
