"""The latest scores of those who were asked: the same numbers as in a table of everybody, and a row for no one else."""

from __future__ import annotations

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from fedfuse.federation.client_scores import NONE, by_prototype, of_older_runs, updated
from fedfuse.federation.prototypes import Prototypes
from fedfuse.runtime.evaluate import Score

PROTOTYPES = Prototypes([("a", 5), ("b", 4), ("a", 3)])
numbers = st.floats(0, 10)
rounds = st.lists(
    st.dictionaries(
        st.integers(0, 11), st.builds(lambda a, m: Score(a, 2 * a, {"f1": m}), numbers, st.none() | numbers)
    ),
    max_size=6,
)


def table_of_everybody(played: list[dict[int, Score]]) -> torch.Tensor:
    rows = torch.full((12, 3), torch.nan, dtype=torch.float64)
    for scores in played:
        for client, score in scores.items():
            metric = score.metrics["f1"]
            values = [score.accuracy, score.loss, math.nan if metric is None else metric]
            rows[client] = torch.tensor(values, dtype=torch.float64)
    return rows


@given(rounds)
def test_the_rows_by_prototype_are_those_of_a_table_of_everybody(played):
    latest = NONE
    for scores in played:
        latest = updated(latest, scores, ["f1"])
    plain = table_of_everybody(played)
    expected: dict[str, list[torch.Tensor]] = {}
    for row, name in zip(plain, PROTOTYPES, strict=True):
        if not row[0].isnan():
            expected.setdefault(name, []).append(row)
    found = by_prototype(latest, PROTOTYPES)
    assert found.keys() == expected.keys()
    for name, own in expected.items():
        stacked = torch.stack(own)
        assert torch.equal(found[name].nan_to_num(-1), stacked.nan_to_num(-1))
        assert torch.equal(found[name].mean(0).nan_to_num(-1), stacked.mean(0).nan_to_num(-1))
    if len(latest):
        assert torch.equal(of_older_runs(plain).nan_to_num(-1), latest.nan_to_num(-1))


def test_nobody_who_was_not_asked_takes_room():
    assert updated(NONE, {999_999: Score(0.5, 1.0)}).tolist() == [[999_999, 0.5, 1.0]]
