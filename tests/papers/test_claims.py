from __future__ import annotations

import math

import pytest

from fedfuse.core.errors import ConfigError
from fedfuse.report.intervals import Interval
from fedfuse_papers.claims import Claim, judge
from tests.papers.samples import make_entry

T_OF_TWO = 4.302652729911275
"""The 97.5 % quantile of Student's t with two degrees of freedom, from a table."""


def by_seed(*values: float) -> dict[int, float]:
    return dict(enumerate(values))


def test_interval_of_three_paired_differences() -> None:
    interval = Interval.of([1.0, 2.0, 3.0])
    reach = T_OF_TWO / math.sqrt(3)
    assert interval.mean == 2
    assert interval.low == pytest.approx(2 - reach, abs=1e-6)
    assert interval.high == pytest.approx(2 + reach, abs=1e-6)


@pytest.mark.parametrize(
    ("higher", "lower", "by", "answer"),
    [
        ((10, 11, 12), (1, 2, 3), 0, "holds"),
        ((10, 11, 12), (1, 2, 3), 8.5, "holds"),
        ((10, 11, 12), (1, 2, 3), 9.5, "does not hold"),
        ((1, 2, 3), (10, 11, 12), 0, "does not hold"),
        ((3, 1, 2), (2, 3, 1), 0, "not enough seeds"),
        ((10, 11), (1, 2), 0, "not enough seeds"),
        ((), (), 0, "not enough seeds"),
    ],
)
def test_verdicts(higher, lower, by, answer) -> None:
    assert judge(by_seed(*higher), by_seed(*lower), by)[1] == answer


def test_seeds_are_paired() -> None:
    """What seeds have in common cancels: means far apart within a seed, overlapping across seeds."""
    interval, answer = judge(by_seed(11, 51, 91), by_seed(10, 50, 90), 0)
    assert (interval.mean, interval.low, answer) == (1, 1, "holds")
    interval, _ = judge({0: 5, 1: 7, 9: 100}, {1: 6, 0: 4, 8: -100}, 0)
    assert (interval.mean, interval.seeds) == (1, 2)


def test_swapping_the_sides_mirrors_the_interval() -> None:
    one, _ = judge(by_seed(3, 1, 7), by_seed(2, 5, 1), 0)
    other, _ = judge(by_seed(2, 5, 1), by_seed(3, 1, 7), 0)
    assert (one.mean, one.low, one.high) == pytest.approx((-other.mean, -other.high, -other.low))


def test_a_claim_compares_cells_that_are_alike_otherwise() -> None:
    claim = Claim(says="", higher={"method": "FedProx"}, lower={"method": "FedAvg"}, where={"alpha": ("0.1",)})
    cells = make_entry().combinations("paper")
    assert claim.pairs(cells) == [({"method": "FedProx", "alpha": "0.1"}, {"method": "FedAvg", "alpha": "0.1"})]
    everywhere = Claim(says="", higher={"method": "FedProx"}, lower={"method": "FedAvg"})
    assert len(everywhere.pairs(cells)) == 2
    assert everywhere.pairs([cell for cell in cells if cell["method"] == "FedProx"]) == []


def test_claims_about_nothing_are_refused() -> None:
    entry = make_entry()
    with pytest.raises(ConfigError, match="unknown method 'FedProxx'"):
        Claim(says="x", higher={"method": "FedProxx"}, lower={"method": "FedAvg"}).check(entry, "claims")
    with pytest.raises(ConfigError, match="'x' should name different labels of the same axes"):
        Claim(says="x", higher={"method": "FedAvg"}, lower={"alpha": "1"}).check(entry, "claims")
