"""Who takes part, and who runs what."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.federation import FederationSettings
from fedfuse.federation.sampling import assign_prototypes, clients_per_round, prototype_of, sample


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


class TestPrototypes:
    def test_feddfs_blocks(self):
        assert assign_prototypes(["a", "b", "c"], {}, 21) == ["a"] * 7 + ["b"] * 7 + ["c"] * 7

    def test_shares(self):
        assert assign_prototypes(["a", "b"], {"a": 3}, 8) == ["a"] * 6 + ["b"] * 2

    @given(st.data())
    def test_blocks_are_contiguous_complete_and_proportional(self, data):
        names = [f"p{i}" for i in range(data.draw(st.integers(1, 6)))]
        shares = {name: data.draw(st.integers(1, 4)) for name in names}
        clients = data.draw(st.integers(4 * sum(shares.values()), 200))
        assigned = assign_prototypes(names, shares, clients)
        assert len(assigned) == clients
        assert [name for name, _ in groupby(assigned)] == names
        for name in names:
            assert abs(assigned.count(name) - clients * shares[name] / sum(shares.values())) <= 1

    @given(prototypes=st.integers(1, 20), more=st.integers(0, 40))
    def test_equal_shares_leave_nobody_out(self, prototypes, more):
        names = [f"p{i}" for i in range(prototypes)]
        counts = Counter(assign_prototypes(names, {}, prototypes + more))
        assert set(counts) == set(names)
        assert max(counts.values()) - min(counts.values()) <= 1

    def test_errors_name_what_is_wrong(self):
        with pytest.raises(ConfigError, match=r"shares names 'z', but models has a, b"):
            assign_prototypes(["a", "b"], {"z": 1}, 8)
        with pytest.raises(ConfigError, match="3 models need at least as many clients, but the partition has 2"):
            assign_prototypes(["a", "b", "c"], {}, 2)
        with pytest.raises(ConfigError, match="leaves no client for model 'b' among 4 clients"):
            assign_prototypes(["a", "b"], {"a": 100}, 4)


class TestPrototypeOf:
    def test_one_by_one(self):
        settings = FederationSettings(assigned=("b", "a", "b"))
        assert prototype_of(["a", "b", "c"], settings, 3) == ["b", "a", "b"]

    def test_in_blocks_otherwise(self):
        assert prototype_of(["a", "b"], FederationSettings(shares={"a": 2}), 3) == ["a", "a", "b"]

    def test_errors_name_what_is_wrong(self):
        with pytest.raises(ConfigError, match=r"federation\.assigned names 1 models for 2 clients"):
            prototype_of(["a", "b"], FederationSettings(assigned=("a",)), 2)
        with pytest.raises(ConfigError, match=r"federation\.assigned: unknown model 'z'"):
            prototype_of(["a", "b"], FederationSettings(assigned=("a", "z")), 2)
