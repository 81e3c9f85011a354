"""Masks cancel: whoever drops out when, the sum is that of those who are in it, or nobody sees it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from fedfuse.core.errors import DataError
from fedfuse.federation.engine import WithheldError
from fedfuse.federation.sums.settings import SecureSums
from fedfuse.flower.masking.messages import ARRAYS, ATTEMPT, CONFIG, message
from fedfuse.flower.masking.neighbours import neighbours_of
from fedfuse.flower.masking.party import HELD
from fedfuse.flower.masking.primitives import commitment, fresh_seed, mask, secret_of, shares_of
from tests.flower.masking.parties import LETTERS, MASKING, STEPS, Parties, plain_sum, rows

NUMBERS = (3, 5, 6, 9)
"""Clients of four, whose numbers are not their places."""


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_sum_is_that_of_pythons_own_integers(tmp_path, dtype):
    values = rows(NUMBERS, dtype=dtype)
    parties = Parties(values, tmp_path)
    total, members = parties.sum()
    assert members == list(NUMBERS)
    assert total.tolist() == plain_sum(values, NUMBERS)


def test_numbers_wrap_around_and_come_back(tmp_path):
    values = {client: np.array([2**31 - 1, -(2**31)], dtype=np.int32) for client in NUMBERS}
    total, _ = Parties(values, tmp_path).sum()
    assert total.astype(np.uint32).tolist() == [n % 2**32 for n in plain_sum(values, NUMBERS)]


PATTERNS = [pattern for pattern in product((None, *STEPS), repeat=4) if sum(step is not None for step in pattern) <= 2]


@pytest.mark.parametrize("kind", ["one", "two"])
def test_whoever_drops_out_when_the_sum_is_exact_or_unseen(tmp_path, kind):
    """Every way in which one or two of four parties are gone, from every step on; three are needed."""
    values, seen, unseen = rows(NUMBERS, size=5), 0, 0
    for number, pattern in enumerate(PATTERNS):
        gone = {client: step for client, step in zip(NUMBERS, pattern, strict=True) if step is not None}
        if len(gone) != {"one": 1, "two": 2}[kind]:
            continue
        parties = Parties(values, tmp_path / str(number))
        parties.gone = gone
        try:
            total, members = parties.sum()
        except (WithheldError, IndexError):  # nobody is left to be in a sum
            unseen += 1
            continue
        seen += 1
        assert members == [client for client in NUMBERS if gone.get(client, "opening") == "opening"]
        assert total.tolist() == plain_sum(values, members)
    assert (seen, unseen) == {"one": (16, 0), "two": (0, 96)}[kind]


def test_who_is_gone_at_the_opening_is_in_the_sum_all_the_same(tmp_path):
    values = rows(range(7))
    parties = Parties(values, tmp_path)
    parties.gone = {1: "opening", 4: "train"}
    total, members = parties.sum()
    assert members == [0, 1, 2, 3, 5, 6]
    assert total.tolist() == plain_sum(values, members)


@pytest.mark.parametrize("gone", [{}, {0: "train"}, {2: "keys", 7: "shares", 8: "train", 5: "opening"}])
def test_among_some_neighbours(tmp_path, gone):
    """A ring of eleven with six neighbours each."""
    values = rows(range(11), size=8)
    parties = Parties(values, tmp_path, neighbours=6, share=0.55)
    parties.gone = gone
    total, members = parties.sum()
    assert members == [c for c in range(11) if gone.get(c, "opening") == "opening"]
    assert total.tolist() == plain_sum(values, members)
    held = [dict(parties.states[c].get(HELD, {})) for c in members if c not in gone]
    assert not any(held), "whoever helped to open has forgotten its secrets"


def test_more_clients_than_a_party_has_neighbours_may_be_asked_for(tmp_path):
    values = rows(range(13), size=4)
    parties = Parties(values, tmp_path, neighbours=4, least=12, share=0.55)
    parties.gone = {7: "train"}
    total, members = parties.sum()
    assert total.tolist() == plain_sum(values, members)
    assert len(members) == 12


def test_who_is_refused_by_the_server_counts_as_gone(tmp_path):
    values = rows(range(5))
    total, members = Parties(values, tmp_path).sum(refused=[3])
    assert members == [0, 1, 2, 4]
    assert total.tolist() == plain_sum(values, members)


def test_neighbours_are_mutual_and_as_many_as_the_experiment_says():
    settings = SecureSums(neighbours=8)
    ring = list(np.random.default_rng(0).permutation(40))
    known = neighbours_of(ring, settings)
    assert all(len(set(own)) == 8 and one not in own for one, own in known.items())
    assert all(one in known[other] for one, own in known.items() for other in own)
    assert all(len(own) == 8 for own in neighbours_of(range(9), settings).values())


class TestNothingIsSeen:
    def test_masked_zeros_are_uniform(self, tmp_path):
        size = 20_000
        parties = Parties({client: np.zeros(size, dtype=np.int32) for client in NUMBERS}, tmp_path)
        parties.sum()
        for masked in parties.masked.values():
            bits = np.unpackbits(masked.view(np.uint8))
            assert abs(bits.mean() - 0.5) < 5 * 0.5 / len(bits) ** 0.5
            counts = np.bincount(masked.view(np.uint8), minlength=256)
            expected = 4 * size / 256
            assert ((counts - expected) ** 2 / expected).sum() < 255 + 6 * (2 * 255) ** 0.5
        assert len({masked.tobytes() for masked in parties.masked.values()}) == 4

    def test_a_partial_sum_tells_nothing(self, tmp_path):
        """All masked rows but one, with what the opening gave: still uniform."""
        parties = Parties({client: np.zeros(20_000, dtype=np.int32) for client in NUMBERS}, tmp_path)
        masking, letters = parties.begin()
        masked = {client: parties.train(client, own) for client, own in letters.items()}
        everything = masking.masks_of(list(NUMBERS), masked[3])
        partial = masked[3] + masked[5] + masked[6] - everything
        bits = np.unpackbits(partial.view(np.uint8))
        assert abs(bits.mean() - 0.5) < 5 * 0.5 / len(bits) ** 0.5

    def test_everything_is_new_in_every_attempt(self, tmp_path):
        parties = Parties(rows(NUMBERS), tmp_path)
        parties.sum()
        first, keys = dict(parties.masked), {s[2][ARRAYS]["keys"].data for s in parties.said if s[0] == "keys"}
        parties.said.clear()
        parties.sum()
        assert not keys & {said[2][ARRAYS]["keys"].data for said in parties.said if said[0] == "keys"}
        assert all((first[client] != parties.masked[client]).mean() > 0.9 for client in NUMBERS)

    def test_nobody_gives_shares_of_both_secrets_of_a_party(self, tmp_path):
        parties = Parties(rows(range(5)), tmp_path)
        parties.gone = {2: "train"}
        parties.sum()
        for step, _, content in parties.said:
            if step == "opening":
                assert content[ARRAYS]["seeds"].shape == (4, 52)
                assert content[ARRAYS]["secrets"].shape == (1, 68)

    def test_a_masks_stream_is_aes_in_counter_mode(self):
        """Against the cipher block by block."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        seed = bytes(range(32))
        blocks = Cipher(algorithms.AES256(seed), modes.ECB()).encryptor()
        stream = b"".join(blocks.update(number.to_bytes(16, "big")) for number in range(4))
        assert mask(seed, np.zeros(16, dtype=np.uint32)).tolist() == np.frombuffer(stream, dtype="<u4").tolist()


class TestShares:
    def test_so_many_give_the_secret_and_fewer_do_not(self):
        seed = fresh_seed()
        shares = shares_of(seed, 4, 7)
        right = commitment(seed)
        assert secret_of(shares[2:6], 4, lambda one: commitment(one) == right) == seed
        assert secret_of(shares[:3], 4, lambda one: commitment(one) == right) is None

    @pytest.mark.parametrize("wrong", [(0,), (3,), (6,), (0, 1), (5, 6)])
    def test_wrong_ones_are_left_out(self, wrong):
        seed = fresh_seed()
        shares = shares_of(seed, 4, 7)
        for place in wrong:
            shares[place] = shares[place][:4] + bytes(48)
        assert secret_of(shares, 4, lambda one: commitment(one) == commitment(seed)) == seed

    def test_one_share_many_times_is_one_share(self):
        seed = fresh_seed()
        shares = shares_of(seed, 3, 5)
        assert secret_of([shares[0]] * 5, 3, lambda one: commitment(one) == commitment(seed)) is None


def changed(content, name, change):
    table = content[ARRAYS][name].numpy().copy()
    arrays = {**content[ARRAYS], name: Array(change(table))}
    return RecordDict({CONFIG: content[CONFIG], ARRAYS: ArrayRecord(arrays)})


def other_attempt(content):
    return RecordDict({CONFIG: ConfigRecord({**content[CONFIG], ATTEMPT: "0" * 32}), ARRAYS: content[ARRAYS]})


def flipped(table):
    table[-1, -5] ^= 1
    return table


LIES = {
    ("keys", "too short"): lambda content: changed(content, "keys", lambda table: table[:, :-1]),
    ("keys", "one of them"): lambda content: changed(content, "keys", lambda table: table[:1]),
    ("keys", "no points"): lambda content: changed(content, "keys", np.zeros_like),
    ("keys", "twice the same"): lambda content: changed(content, "keys", lambda table: table[[0, 0]]),
    ("keys", "another type"): lambda content: changed(content, "keys", lambda table: table.astype(np.int8)),
    ("keys", "another attempt"): other_attempt,
    ("keys", "no arrays"): lambda content: RecordDict({CONFIG: content[CONFIG]}),
    ("keys", "nothing"): lambda _content: RecordDict(),
    ("shares", "too few"): lambda content: changed(content, "sealed", lambda table: table[1:]),
    ("shares", "too long"): lambda content: changed(content, "sealed", lambda table: np.hstack([table, table])),
    ("shares", "no commitment"): lambda content: changed(content, "commitment", lambda table: table[:0]),
    ("shares", "another attempt"): other_attempt,
    ("opening", "too few"): lambda content: changed(content, "seeds", lambda table: table[1:]),
    ("opening", "mutated"): lambda content: changed(content, "seeds", flipped),
    ("opening", "all zero"): lambda content: changed(content, "seeds", np.zeros_like),
    ("opening", "another attempt"): other_attempt,
    ("opening", "nothing"): lambda _content: RecordDict(),
}


class TestLiars:
    @pytest.mark.parametrize("lie", list(LIES), ids=" ".join)
    def test_one_of_five_keeps_nobody_from_the_sum_of_the_others(self, tmp_path, lie):
        values = rows(range(5), size=6)
        step, _ = lie

        def bend(now, client, content):
            return LIES[lie](content) if now == step and client == 2 else content

        parties = Parties(values, tmp_path, bend, share=0.6)
        total, members = parties.sum()
        assert members == ([0, 1, 2, 3, 4] if step == "opening" else [0, 1, 3, 4])
        assert total.tolist() == plain_sum(values, members)
        if lie != ("opening", "mutated") and lie != ("opening", "all zero"):
            assert parties.missed[2].word == "refused"

    def test_somebody_elses_keys_are_refused(self, tmp_path):
        taken = {}

        def bend(step, client, content):
            if step == "keys":
                taken.setdefault("keys", content)
                return taken["keys"] if client == 4 else content
            return content

        parties = Parties(rows(range(5)), tmp_path, bend, share=0.6)
        _, members = parties.sum()
        assert members == [0, 1, 2, 3]
        assert "a key comes twice" in parties.missed[4].reason

    def test_letters_that_nobody_can_read_do_not_stop_those_who_get_them(self, tmp_path):
        """One dealer's letters are damaged on the way to one neighbour; its other shares are enough."""

        def bend(step, client, content):
            return changed(content, "sealed", flipped) if step == "shares" and client == 1 else content

        values = rows(range(5))
        parties = Parties(values, tmp_path, bend, share=0.6)
        total, members = parties.sum()
        assert total.tolist() == plain_sum(values, members)

    def test_a_dealer_whose_letters_are_all_unreadable_only_keeps_the_sum_unseen(self, tmp_path):
        def bend(step, client, content):
            return changed(content, "sealed", np.zeros_like) if step == "shares" and client == 1 else content

        with pytest.raises(WithheldError, match=r"their shares do not fit together|helped to open"):
            Parties(rows(range(5)), tmp_path, bend, share=0.6).sum()


class TestAPartyRefuses:
    @pytest.fixture
    def parties(self, tmp_path):
        return Parties(rows(range(5)), tmp_path)

    def question(self, masking, client=0, **changes):
        """What the server asks for shares, changed."""
        content = masking._asks_for_shares(masking.groups[0], client)
        config = {**content[CONFIG], **{name: v for name, v in changes.items() if not isinstance(v, np.ndarray)}}
        arrays = {name: Array(v) for name, v in changes.items() if isinstance(v, np.ndarray)}
        return RecordDict({CONFIG: ConfigRecord(config), ARRAYS: ArrayRecord({**content[ARRAYS], **arrays})})

    @pytest.fixture
    def asked(self, parties):
        """After the keys, before the shares."""
        from fedfuse.flower.masking.server import Masking

        masking = Masking(parties.settings, parties.ask, parties.missed.__setitem__)
        masking._gather_shares = lambda: None
        masking._letters = lambda _group, _client: {}
        masking.agree([range(5)], {"server-round": 1, "experiment": "e" * 64})
        return masking

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"members": [0, 1]}, "a sum of 2 clients hides too few"),
            ({"members": [1, 2, 3, 4]}, "hides too few"),
            ({"members": [0, 0, 1, 2, 3]}, "no list of different clients"),
            ({"members": [4, 3, 2, 1, 0]}, "from the smallest"),
            ({"members": [-1, 0, 1, 2, 3]}, "no list of different clients"),
            ({"members": 5}, "no list of clients"),
            ({"members": [0, 1, 2, 3, 8]}, "not as many of the sum's clients"),
            ({"neighbours": [1, 2]}, "another shape or type"),
            ({"attempt": "0" * 32}, "no attempt at masks of this name"),
            ({"attempt": "../etc"}, "no name of one"),
            ({"mask-keys": np.zeros((4, 49), dtype=np.uint8)}, "a key comes twice"),
            ({"mask-keys": np.arange(4 * 49, dtype=np.uint8).reshape(4, 49)}, "a key is none"),
        ],
    )
    def test_a_question_for_shares_that_would_betray_it(self, parties, asked, changes, reason):
        with pytest.raises(DataError, match=reason):
            parties.party(0).shares(self.question(asked, **changes))

    def test_fewer_neighbours_than_the_experiment_says(self, parties, asked):
        content = self.question(asked)
        few = message(
            {**content[CONFIG], "neighbours": [1, 2]},
            mask_keys=[row.tobytes() for row in content[ARRAYS]["mask-keys"].numpy()[:2]],
            share_keys=[row.tobytes() for row in content[ARRAYS]["share-keys"].numpy()[:2]],
        )
        with pytest.raises(DataError, match="not as many"):
            parties.party(0).shares(few)

    def test_its_own_key_as_that_of_a_neighbour(self, parties, asked):
        keys = self.question(asked)[ARRAYS]["mask-keys"].numpy().copy()
        keys[1] = np.frombuffer(asked.groups[0].mask_keys[0], dtype=np.uint8)
        with pytest.raises(DataError, match="a key comes twice"):
            parties.party(0).shares(self.question(asked, **{"mask-keys": keys}))

    def test_to_share_twice(self, parties, asked):
        parties.party(0).shares(self.question(asked))
        with pytest.raises(DataError, match="has come to 'keys'"):
            parties.party(0).shares(self.question(asked))

    def test_to_answer_without_masks(self, parties):
        with pytest.raises(DataError, match="was promised nothing but sums"):
            parties.party(0).asked_to(RecordDict({CONFIG: ConfigRecord({})}))

    def test_to_answer_twice_with_the_same_masks(self, parties):
        _, letters = parties.begin()
        parties.train(0, letters[0])
        with pytest.raises(DataError, match="has come to 'shares'"):
            parties.train(0, letters[0])

    def test_to_answer_with_too_few_neighbours(self, parties):
        _, letters = parties.begin()
        rest = letters[0][LETTERS]["sealed"].numpy()[:2]
        few = {
            MASKING: ConfigRecord({**letters[0][MASKING], "senders": letters[0][MASKING]["senders"][:2]}),
            LETTERS: ArrayRecord({"sealed": Array(rest)}),
        }
        with pytest.raises(DataError, match="only 2 of 4 neighbours sent shares"):
            parties.train(0, few)

    @pytest.mark.parametrize(
        ("members", "reason"),
        [
            ([1, 2, 3, 4], "or without this one"),
            ([0, 1, 2, 3, 7], "did not agree on masks"),
            ([0, 1, 2], "a sum of 3 of 5 clients hides too few"),
        ],
    )
    def test_to_open_a_sum_that_hides_too_little(self, parties, members, reason):
        masking, letters = parties.begin()
        parties.train(0, letters[0])
        with pytest.raises(DataError, match=reason):
            parties.answer("opening", 0, message({ATTEMPT: masking.attempt, "members": members}))

    def test_to_open_twice(self, parties):
        """So nobody gets shares of a seed first and of the key then."""
        masking, letters = parties.begin()
        parties.train(0, letters[0])
        parties.answer("opening", 0, message({ATTEMPT: masking.attempt, "members": [0, 1, 2, 3, 4]}))
        with pytest.raises(DataError, match="has come to 'train'"):
            parties.answer("opening", 0, message({ATTEMPT: masking.attempt, "members": [0, 1, 2, 3]}))

    def test_to_have_one_answer_in_two_sums_with_different_others(self, parties):
        """The difference of the two would be the answer of whoever is in one of them alone."""
        parties.sum(task="one")
        parties.masked.clear()
        again, _ = parties.sum(task="one")  # by a server that fell back: the same sum
        assert again.tolist() == plain_sum(parties.values, range(5))
        parties.masked.clear()
        parties.gone = {4: "train"}
        with pytest.raises(WithheldError, match="0 of them helped to open it, and 4 are needed"):
            parties.sum(task="one")
        assert "two sums would betray it" in parties.missed[0].reason
        parties.masked.clear()
        total, members = parties.sum(task="another")
        assert total.tolist() == plain_sum(parties.values, members)

    def test_half_a_line_of_a_killed_node_is_no_trouble(self, parties):
        parties.sum(task="one")
        path = parties.own(0) / "sums.txt"
        path.write_text(path.read_text() + "half a li")
        parties.masked.clear()
        total, _ = parties.sum(task="two")
        assert total.tolist() == plain_sum(parties.values, range(5))
        parties.masked.clear()
        parties.gone = {4: "train"}
        with pytest.raises(WithheldError):
            parties.sum(task="two")
