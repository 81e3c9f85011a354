"""A bound on the length of updates, and clipping to one: against numpy, fixed and relative to the round's median."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedfuse.core.weights import Weights
from fedfuse.parts.screen import NormBound, NormClip, Screened
from tests.parts.robust_material import (
    BASE,
    COUNT,
    HONEST_AND_HOSTILE,
    anywhere,
    around,
    parameters,
    places,
    screened,
    updates_of,
    view_of,
)


def lengths(models):
    return np.linalg.norm(parameters(models) - parameters([BASE]), axis=1)


@given(st.integers(1, 9), st.floats(1, 4), st.integers(0, 1000))
@settings(max_examples=30)
def test_who_is_longer_than_times_the_median_is_left_out(number, times, seed):
    models = [*around(number, seed), *around(2, seed + 1, spread=3.0)]
    kept = screened(NormBound(times=times), models)
    limit = times * np.median(lengths(models))
    assert places(kept.counted) == [k for k, length in enumerate(lengths(models)) if length <= limit * (1 + 1e-6)]
    assert set(kept.reasons) == {10 + k for k in range(len(models))} - {u.client for u in kept.counted}


def test_a_fixed_norm_is_the_bound():
    models = [*around(3, spread=0.1), *around(1, spread=5.0)]
    assert places(screened(NormBound(norm=2.0), models).counted) == [0, 1, 2]


@given(HONEST_AND_HOSTILE)
@settings(max_examples=30)
def test_clipped_updates_are_as_long_as_the_median(case):
    honest, hostile, far, seed = case
    models = [*around(honest, seed), *anywhere(hostile, far, seed)]
    kept = screened(NormClip(), models)
    after = [update.weights for update in kept.counted]
    limit = np.median(lengths(models))
    assert lengths(after) == pytest.approx(np.minimum(lengths(models), limit), rel=1e-3)
    assert limit <= max(lengths(models[:honest])), "fewer than half cannot move the median beyond the honest ones"
    for before, now in zip(models, after, strict=True):
        assert np.array_equal(before.buffers.numpy(), now.buffers.numpy())
        one, other = (parameters([w])[0] - parameters([BASE])[0] for w in (before, now))
        assert one @ other == pytest.approx(np.linalg.norm(one) * np.linalg.norm(other), rel=1e-3)


def test_clipped_weights_are_what_teaches():
    updates = updates_of([*around(2), Weights(BASE.flat + 100, BASE.layout)])
    kept = NormClip(norm=1.0).screen(view_of(), Screened(updates[:2], updates))
    assert lengths([u.weights for u in kept.counted]) == pytest.approx([1, 1], rel=1e-5)
    assert len(kept.teachers) == 3
    assert kept.teachers[0] is kept.counted[0]


def test_short_updates_keep_their_very_weights():
    updates = updates_of(around(3, spread=1e-3))
    kept = NormClip(norm=1.0).screen(view_of(), Screened(updates, updates))
    assert all(one is other for one, other in zip(kept.counted, updates, strict=True))


def test_with_one_client_nothing_happens():
    for part in (NormBound(), NormClip()):
        [only] = screened(part, around(1)).counted
        assert only.weights.flat[:COUNT].equal(around(1)[0].flat[:COUNT])


def test_who_only_teaches_is_clipped_like_the_others():
    updates = updates_of(around(3))
    kept = NormClip(norm=0.5).screen(view_of(), dataclasses.replace(Screened(updates, updates), counted=updates[:1]))
    assert lengths([kept.counted[0].weights]) == pytest.approx([0.5], rel=1e-5)
