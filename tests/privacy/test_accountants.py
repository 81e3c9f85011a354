"""Epsilon against accountants that share no code with ours: dp-accounting, and closed forms."""

from __future__ import annotations

import builtins
import math

import dp_accounting
import pytest
from dp_accounting import pld
from dp_accounting import rdp as renyi
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from fedfuse.core.errors import MissingExtraError
from fedfuse.core.releases import Release, of_gaussian
from fedfuse.privacy import accountants
from fedfuse.privacy.accountants import check_accountants, epsilon_of, merged

DELTA = 1e-5
ORDERS = [1 + x / 10 for x in range(1, 100)] + list(range(12, 64)) + [64, 72, 80, 96, 112, 128, 160, 192, 256, 384, 512]


def events(releases):
    return dp_accounting.ComposedDpEvent(
        [
            dp_accounting.SelfComposedDpEvent(
                dp_accounting.PoissonSampledDpEvent(r.rate, dp_accounting.GaussianDpEvent(r.multiplier))
                if r.rate < 1
                else dp_accounting.GaussianDpEvent(r.multiplier),
                r.times,
            )
            for r in releases
        ]
    )


def theirs(releases, accountant):
    return accountant.compose(events(releases)).get_epsilon(DELTA)


def exact(releases, delta=DELTA):
    """Gaussian mechanisms without sampling: Balle and Wang, 2018, Theorem 8."""
    mu = math.sqrt(sum(r.times / r.multiplier**2 for r in releases))

    def excess(epsilon):
        return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - delta

    return brentq(excess, 0, 300)


SAMPLED = {
    "many small steps": [Release(1.0, 0.01, 1000)],
    "large batches": [Release(2.0, 0.3, 40)],
    "little noise": [Release(0.6, 0.05, 200)],
    "much noise": [Release(8.0, 0.05, 100)],
    "two clients' worth": [Release(1.1, 0.1, 60), Release(1.5, 0.2, 30)],
    "with counts beside": [Release(1.1, 0.1, 60), Release(10.0, 1.0, 5)],
}
WHOLE = {
    "once": [Release(1.0)],
    "often": [Release(3.0, 1.0, 50)],
    "mixed": [Release(2.0, 1.0, 4), Release(5.0, 1.0, 9)],
}


@pytest.mark.parametrize("name", [*SAMPLED, *WHOLE])
def test_rdp_is_that_of_dp_accounting(name):
    releases = {**SAMPLED, **WHOLE}[name]
    ours = epsilon_of(releases, DELTA, "rdp")
    assert ours == pytest.approx(theirs(releases, renyi.RdpAccountant(ORDERS)), rel=0.01)


@pytest.mark.parametrize("name", ["large batches", "with counts beside", *WHOLE])
def test_prv_is_that_of_privacy_loss_distributions(name):
    releases = {**SAMPLED, **WHOLE}[name]
    ours = epsilon_of(releases, DELTA, "prv")
    assert ours == pytest.approx(theirs(releases, pld.PLDAccountant()), abs=0.03)
    assert ours <= epsilon_of(releases, DELTA, "rdp")


@pytest.mark.parametrize("name", list(WHOLE))
@pytest.mark.parametrize("accountant", ["rdp", "prv"])
def test_no_accountant_tells_less_than_is_true(name, accountant):
    truth = exact(WHOLE[name])
    told = epsilon_of(WHOLE[name], DELTA, accountant)
    assert truth <= told <= truth * 1.12 + 0.02


@settings(max_examples=30, deadline=None)
@given(st.floats(0.5, 30), st.integers(1, 200), st.floats(1.01, 3), st.sampled_from([1e-3, 1e-7]))
def test_more_noise_is_less_and_more_rounds_are_more(multiplier, times, more, delta):
    base = epsilon_of([Release(multiplier, 1.0, times)], delta, "rdp")
    assert epsilon_of([Release(multiplier * more, 1.0, times)], delta, "rdp") < base
    assert epsilon_of([Release(multiplier, 1.0, times + 1)], delta, "rdp") > base
    assert epsilon_of([Release(multiplier, 1.0, times)], delta / 10, "rdp") > base


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.8, 2.0, 5.0]), st.sampled_from([0.05, 1.0]), st.integers(1, 5)),
        min_size=1,
        max_size=6,
    )
)
def test_what_is_put_together_is_the_same(parts):
    releases = [Release(*part) for part in parts]
    one = epsilon_of(releases, DELTA, "rdp")
    split = [Release(r.multiplier, r.rate, 1) for r in releases for _ in range(r.times)]
    assert epsilon_of(split, DELTA, "rdp") == pytest.approx(one, rel=1e-9)
    assert epsilon_of(merged(releases), DELTA, "rdp") == pytest.approx(one, rel=1e-9)
    assert len([r for r in merged(releases) if r.rate == 1]) <= 1


def test_nothing_released_is_nothing_given_away():
    assert epsilon_of([], DELTA, "rdp") == 0
    assert epsilon_of([], DELTA, "prv") == 0


def test_without_noise_there_is_no_bound():
    assert epsilon_of([Release(0.0)], DELTA, "rdp") == math.inf
    assert epsilon_of([Release(3.0), Release(0.0, 0.5)], DELTA, "prv") == math.inf


@pytest.mark.parametrize("releases", [[Release(0.02, 1.0, 100)], [Release(0.3, 0.5, 5000)]])
def test_prv_is_not_asked_where_it_would_take_forever(releases):
    assert epsilon_of(releases, DELTA, "prv") == epsilon_of(releases, DELTA, "rdp") > accountants.MOST_BY_PRV


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from([0.0, 1e-300, 1e-5, 0.3, 1e7, 1e300]),
    st.sampled_from([0.0, 1e-12, 0.5, 1.0]),
    st.integers(1, 10**13),
)
def test_whatever_a_liar_says_of_its_data_is_counted_soon(multiplier, rate, times):
    for accountant in ("rdp", "prv"):
        told = epsilon_of([Release(multiplier, rate, times)], DELTA, accountant)
        assert told >= 0
        assert not math.isnan(told)


def test_small_epsilons_are_not_told_too_large():
    assert epsilon_of([Release(200.0)], DELTA, "rdp") < 0.03


def test_the_classical_gaussian_mechanism_is_at_most_as_private_as_it_says():
    for epsilon in (0.1, 0.5, 0.9):
        assert exact([of_gaussian(epsilon, DELTA)]) <= epsilon


def test_who_has_no_opacus_is_told_what_to_install(monkeypatch):
    accountants._opacus.cache_clear()
    plain = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("opacus"):
            raise ImportError(name)
        return plain(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    sentence = r"a promise of privacy has to be counted, .* pip install 'fedfuse\[privacy\]'"
    with pytest.raises(MissingExtraError, match=sentence):
        check_accountants()
    accountants._opacus.cache_clear()
