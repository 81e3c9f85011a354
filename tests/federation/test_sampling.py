"""Who takes part."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.federation import FederationSettings
from fedfuse.federation.sampling import clients_per_round, sample


class TestSample:
    @given(clients=st.integers(1, 200), data=st.data(), seed=st.integers(0, 100))
    def test_without_replacement_and_in_order(self, clients, data, seed):
        number = data.draw(st.integers(1, clients))
        chosen = sample(clients, number, Key(seed))
        assert len(chosen) == len(set(chosen)) == number
        assert chosen == sorted(chosen)
        assert all(0 <= client < clients for client in chosen)
        assert chosen == sample(clients, number, Key(seed))

    def test_everybody_gets_a_turn(self):
        turns = Counter(client for number in range(300) for client in sample(10, 3, Key(0).child("round", number)))
        assert len(turns) == 10
        assert all(50 < count < 130 for count in turns.values())


class TestNumber:
    @pytest.mark.parametrize(
        ("share", "clients", "expected"), [(0.4, 21, 8), (0.1, 150, 15), (1.0, 7, 7), (0.01, 5, 1), (0.4, 20, 8)]
    )
    def test_share_is_rounded_and_at_least_one(self, share, clients, expected):
        assert clients_per_round(FederationSettings(participation=share), clients) == expected

    def test_a_number_replaces_the_share(self):
        assert clients_per_round(FederationSettings(participation=0.1, clients_per_round=5), 20) == 5

    def test_more_than_there_are_is_an_error(self):
        with pytest.raises(ConfigError, match="clients_per_round is 5, but the partition has 4"):
            clients_per_round(FederationSettings(clients_per_round=5), 4)
