"""Who runs what, and how little room it takes."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedfuse.core.errors import ConfigError
from fedfuse.federation import FederationSettings
from fedfuse.federation.prototypes import Prototypes, prototypes_of


def in_blocks(names: list[str], shares: dict[str, int], clients: int) -> Prototypes:
    return prototypes_of(names, FederationSettings(shares=shares), clients)


class TestBlocks:
    def test_feddfs_blocks(self):
        assert list(in_blocks(["a", "b", "c"], {}, 21)) == ["a"] * 7 + ["b"] * 7 + ["c"] * 7

    def test_shares(self):
        assert list(in_blocks(["a", "b"], {"a": 3}, 8)) == ["a"] * 6 + ["b"] * 2

    @given(st.data())
    def test_they_are_contiguous_complete_and_proportional(self, data):
        names = [f"p{i}" for i in range(data.draw(st.integers(1, 6)))]
        shares = {name: data.draw(st.integers(1, 4)) for name in names}
        clients = data.draw(st.integers(4 * sum(shares.values()), 200))
        assigned = in_blocks(names, shares, clients)
        assert len(assigned) == clients
        assert [name for name, _ in groupby(assigned)] == names
        for name in names:
            assert abs(assigned.count(name) - clients * shares[name] / sum(shares.values())) <= 1

    @given(prototypes=st.integers(1, 20), more=st.integers(0, 40))
    def test_equal_shares_leave_nobody_out(self, prototypes, more):
        names = [f"p{i}" for i in range(prototypes)]
        counts = in_blocks(names, {}, prototypes + more).clients_of
        assert set(counts) == set(names)
        assert max(counts.values()) - min(counts.values()) <= 1

    def test_errors_name_what_is_wrong(self):
        with pytest.raises(ConfigError, match=r"shares names 'z', but models has a, b"):
            in_blocks(["a", "b"], {"z": 1}, 8)
        with pytest.raises(ConfigError, match="3 models need at least as many clients, but the partition has 2"):
            in_blocks(["a", "b", "c"], {}, 2)
        with pytest.raises(ConfigError, match="leaves no client for model 'b' among 4 clients"):
            in_blocks(["a", "b"], {"a": 100}, 4)


class TestOneByOne:
    @given(assigned=st.lists(st.sampled_from("abc"), min_size=1, max_size=30))
    def test_a_sequence_like_the_list_itself(self, assigned):
        prototypes = prototypes_of(["a", "b", "c"], FederationSettings(assigned=tuple(assigned)), len(assigned))
        assert list(prototypes) == assigned
        assert [prototypes[-client] for client in range(1, len(assigned) + 1)] == assigned[::-1]
        assert prototypes[1::2] == assigned[1::2]
        assert dict(prototypes.clients_of) == Counter(assigned)
        assert prototypes.of(np.arange(len(assigned))).tolist() == assigned
        with pytest.raises(IndexError):
            prototypes[len(assigned)]

    def test_errors_name_what_is_wrong(self):
        with pytest.raises(ConfigError, match=r"federation\.assigned names 1 models for 2 clients"):
            prototypes_of(["a", "b"], FederationSettings(assigned=("a",)), 2)
        with pytest.raises(ConfigError, match=r"federation\.assigned: unknown model 'z'"):
            prototypes_of(["a", "b"], FederationSettings(assigned=("a", "z")), 2)


def test_a_model_without_clients_has_none():
    assert in_blocks(["a", "server"], {"server": 0}, 5).clients_of["server"] == 0


def test_no_part_can_change_how_many_clients_there_are():
    with pytest.raises(TypeError):
        in_blocks(["a"], {}, 5).clients_of["a"] = 6
