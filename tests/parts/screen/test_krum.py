"""Krum and Multi-Krum against loops over all neighbourhoods, and what they bear."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedfuse.core.errors import ConfigError
from fedfuse.parts.screen import Krum, MultiKrum, Screened
from tests.helpers import make_update, make_weights
from tests.parts.robust_material import (
    BANK,
    anywhere,
    around,
    check_context,
    parameters,
    places,
    screened,
    updates_of,
    view_of,
)


def by_loop(models, hostile):
    """Krum's scores as the paper writes them."""
    points = parameters(models)
    scores = []
    for k in range(len(points)):
        apart = sorted(float(np.sum((points[k] - points[j]) ** 2)) for j in range(len(points)) if j != k)
        scores.append(sum(apart[: len(points) - hostile - 2]))
    return scores


@pytest.mark.parametrize(("number", "hostile"), [(3, 0), (7, 1), (9, 3), (10, 2)])
def test_krum_keeps_the_smallest_score(number, hostile):
    models = around(number, seed=number)
    kept = screened(Krum(hostile=hostile), models)
    assert places(kept.counted) == places(kept.teachers) == [int(np.argmin(by_loop(models, hostile)))]
    assert len(kept.reasons) == number - 1


@pytest.mark.parametrize(("keep", "kept"), [(None, 7), (3, 3), (100, 9)])
def test_multi_krum_keeps_the_best(keep, kept):
    models = around(9, seed=2)
    best = sorted(np.argsort(by_loop(models, 2), kind="stable")[:kept].tolist())
    assert places(screened(MultiKrum(hostile=2, keep=keep), models).counted) == best


@settings(max_examples=30)
@given(st.integers(0, 3), st.integers(0, 10**6), st.sampled_from([10.0, 1e4, 1e9]))
def test_nobody_who_is_far_away_is_kept(hostile, seed, far):
    models = [*around(2 * hostile + 3 - hostile, seed), *anywhere(hostile, far, seed)]
    honest = set(range(len(models) - hostile))
    assert set(places(screened(Krum(hostile=hostile), models).counted)) <= honest
    assert set(places(screened(MultiKrum(hostile=hostile), models).counted)) == honest


def test_each_model_has_its_own_round():
    mine, others = (
        updates_of(around(5)),
        [make_update(make_weights(BANK, "other", k), client=20 + k, prototype="other") for k in range(2)],
    )
    kept = Krum(hostile=1).screen(view_of(), Screened([*mine, *others], [*mine, *others]))
    assert [u.prototype for u in kept.counted] == ["mlp", "other", "other"], "of two nobody can say who is right"


def test_a_screen_before_it_is_respected():
    updates = updates_of(around(6))
    before = Screened(updates[1:], updates[2:], {10: "earlier"})
    kept = MultiKrum(hostile=1).screen(view_of(), before)
    assert 10 in kept.reasons
    assert set(places(kept.teachers)) <= set(places(kept.counted)) & {2, 3, 4, 5}


def test_in_a_smaller_round_it_bears_fewer_and_says_so():
    said = []
    kept = screened(MultiKrum(hostile=3), around(7), weakened=said.append)
    assert len(kept.counted) == 5, "of seven clients two may be hostile"
    [sentence] = said
    assert sentence == (
        "screen multi_krum bears 2 hostile clients in this round instead of 3: 7 clients of one model were heard, it "
        "needs 9"
    )
    nobody = screened(Krum(hostile=1), around(2), weakened=said.append)
    assert len(nobody.counted) == 2


@pytest.mark.parametrize("part", [Krum, MultiKrum])
def test_impossible_settings_are_refused(part):
    part(hostile=3).check(check_context(9))
    with pytest.raises(ConfigError, match=r"takes 4 of a round's 10 clients .* needs 11 .* set hostile to 3"):
        part(hostile=0.4).check(check_context(10))
    with pytest.raises(ConfigError, match=r"of model 'other' .* set hostile to 0"):
        part(hostile=1).check(check_context({"mlp": 9, "other": 3}))
    with pytest.raises(ConfigError, match="every two of a round's clients, and 100,000"):
        part(hostile=0.1).check(check_context(100_000))
