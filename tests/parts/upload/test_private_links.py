"""Clip, noise and statistics as mechanisms: what one client can change, what the noise is, and how a norm is found."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.core.secret_key import SecretKey
from fedfuse.parts.protocol.predictions import onto_simplex
from fedfuse.parts.upload import Chain, Clip, Noise, SoftLabels, Statistics, TopK
from fedfuse.parts.upload.clip import INSIDE, NORM
from fedfuse.parts.upload.noise import PARTIES
from tests.helpers import (
    make_bank,
    make_client,
    make_examples,
    make_update,
    make_view,
    make_weights,
    tiny_config,
    tiny_method,
)

BANK = make_bank()
RECEIVED = make_weights(BANK, "mlp", 1)
SIZE = RECEIVED.layout.size


def client_of(key=None, extras=None, **more):
    task = Task(1, 0, "mlp", RECEIVED, extras or {})
    return make_client(task, BANK.lend("mlp", RECEIVED), make_examples(3), bank=BANK, key=key, **more)


def sent_of(links, update, client=None):
    """How far the weights that arrive are from those that were received."""
    packed = Chain(links).pack({"weights": RECEIVED.flat + update}, client or client_of())
    return packed.tensors["weights"] - RECEIVED.flat


def random_update(seed, length=1.0):
    update = torch.randn(SIZE, generator=torch.Generator().manual_seed(seed))
    return update * (length / update.norm())


class TestWhatOneClientCanChange:
    @settings(max_examples=40, deadline=None)
    @given(length=st.floats(0, 1e6), norm=st.sampled_from([0.1, 1.0, 30.0]), seed=st.integers(0, 99))
    def test_a_clipped_update_is_no_longer_than_the_norm(self, length, norm, seed):
        """Neighbours: a client, and the same client blank, whose update is zero."""
        update = random_update(seed, length) if length else torch.zeros(SIZE)
        assert float(sent_of([Clip(norm=norm)], update).norm()) <= norm * (1 + 1e-4) + 1e-5

    @settings(max_examples=40, deadline=None)
    @given(scale=st.sampled_from([0.0, 1.0, 1e9]), norm=st.sampled_from([0.5, 4.0]), seed=st.integers(0, 99))
    def test_so_is_a_table_of_predictions(self, scale, norm, seed):
        table = scale * torch.randn(7, 3, generator=torch.Generator().manual_seed(seed))
        clipped = Chain([Clip(norm=norm)]).pack({"predictions": table}, client_of()).tensors["predictions"]
        assert float(clipped.double().norm()) <= norm * (1 + 1e-4)

    @settings(max_examples=40, deadline=None)
    @given(scale=st.sampled_from([0.0, 1.0, 1e9, float("inf"), float("nan")]), seed=st.integers(0, 99))
    def test_so_is_all_that_travels_beside(self, scale, seed):
        random = torch.Generator().manual_seed(seed)
        extras = {"local/a": scale * torch.randn(4, generator=random), "scores/b": scale * torch.randn(2, 2)}
        link = Statistics(norm=2.0, deviation=1e-9)
        found = link.beside(extras, None, client_of())
        assert math.sqrt(sum(float(t.double().square().sum()) for t in found.values())) <= 2.0 * (1 + 1e-4)
        assert all(t.isfinite().all() for t in found.values())

    @pytest.mark.parametrize("norm", [1e-6, 1e-3, 1.0])
    def test_nothing_is_too_long_that_was_as_long_as_float32_can_be(self, norm):
        """The factor would be rounded to one of the smallest numbers, or to none."""
        longest = torch.finfo(torch.float32).max
        table = torch.tensor([[1.0, -1.0], [0.9, 1.0]]).repeat(20, 1) * longest
        clipped = Chain([Clip(norm=norm)]).pack({"predictions": table}, client_of()).tensors["predictions"]
        beside = Statistics(norm=norm, deviation=1e-12).beside({"scores/a": table}, None, client_of())["scores/a"]
        for found in (clipped, beside):
            assert float(found.double().norm()) == pytest.approx(norm, rel=1e-5)

    @pytest.mark.parametrize("norm", [0.0, -1.0, 1e-44, 1e-300, float("nan"), float("inf"), [1.0, 1.0]])
    def test_no_server_can_send_a_norm_with_which_noise_is_none(self, norm):
        """Of zero, the update would come to zeros with its signs, and noise of zero would leave them."""
        client = client_of(extras={NORM: torch.tensor(norm, dtype=torch.float64)})
        with pytest.raises(DataError, match="the norm that the server sent for clip is no number"):
            Clip(norm=1.0, quantile=0.5).changed(torch.ones(3), client)

    @pytest.mark.parametrize("parties", [0.0, -1.0, 0.3, 1.99, float("nan"), float("inf"), [2.0, 2.0]])
    def test_no_server_can_split_the_noise_otherwise_than_it_is_counted(self, parties):
        client = replace(client_of(extras={PARTIES: torch.tensor(parties)}), bound=1.0)
        with pytest.raises(DataError, match="no whole number above 0"):
            Noise(multiplier=1.0, shared=True).changed(torch.ones(3), client)

    @pytest.mark.parametrize("broken", [float("nan"), float("inf")])
    @pytest.mark.parametrize("measure", ["multiplier", "deviation"])
    def test_an_update_that_is_not_finite_is_blank_behind_counted_noise(self, broken, measure):
        update = random_update(1)
        update[3] = broken
        links = [Clip(norm=1.0), Noise(**{measure: 1e-6})]
        assert float(sent_of(links, update).abs().max()) < 1e-4


class TestNoise:
    def test_is_a_multiple_of_the_norm(self):
        links = [Clip(norm=0.25), Noise(multiplier=2.0)]
        noise = torch.cat([sent_of(links, torch.zeros(SIZE), client_of(Key(n))) for n in range(60)])
        assert float(noise.std()) == pytest.approx(0.5, rel=0.05)
        assert abs(float(noise.mean())) < 4 * 0.5 / len(noise) ** 0.5

    def test_of_probabilities_without_a_clip_is_a_multiple_of_the_longest_table(self):
        table = torch.full((9, 3), 1 / 3)
        chain = Chain([Noise(multiplier=2.0)])
        noised = [
            chain.pack({"predictions": table}, replace(client_of(Key(n)), bound=3.0)).tensors["predictions"] - table
            for n in range(60)
        ]
        assert float(torch.cat(noised).std()) == pytest.approx(6.0, rel=0.05)

    def test_differs_between_clients_rounds_and_links(self):
        chain = [Clip(norm=1.0), Noise(multiplier=1.0), Clip(norm=1e9), Noise(multiplier=1e-9)]
        draws = [sent_of(chain[:2], torch.zeros(SIZE), client_of(Key(n))) for n in range(4)]
        for place, one in enumerate(draws):
            for other in draws[:place]:
                assert abs(float(torch.corrcoef(torch.stack([one, other]))[0, 1])) < 0.5

    def test_is_the_client_s_own_secret_where_it_has_one(self):
        links, nothing = [Clip(norm=1.0), Noise(multiplier=1.0)], torch.zeros(SIZE)
        plain, one, other = (
            sent_of(links, nothing, replace(client_of(), own_secret=secret))
            for secret in (None, SecretKey(1), SecretKey(2))
        )
        assert not torch.isclose(plain, one).any()
        assert not torch.isclose(one, other).any()

    def test_that_is_shared_has_the_deviation_of_one_in_the_sum(self):
        links = [Clip(norm=1.0), Noise(multiplier=3.0, shared=True)]
        chosen = dict.fromkeys(range(16), "mlp")
        told = links[1].broadcast(make_view(BANK), chosen)
        sums = []
        for turn in range(20):
            total = torch.zeros(SIZE)
            for number in chosen:
                extras = {"upload/1/parties": told[number]["parties"]}
                total += sent_of(links, torch.zeros(SIZE), client_of(Key(turn).child(number), extras))
            sums.append(total)
        assert float(torch.cat(sums).std()) == pytest.approx(3.0, rel=0.1)

    def test_parties_are_those_of_the_same_model(self):
        told = Noise(deviation=1.0, shared=True).broadcast(make_view(BANK), {0: "a", 1: "b", 2: "a"})
        assert {client: int(own["parties"]) for client, own in told.items()} == {0: 2, 1: 1, 2: 2}

    def test_tiny_noise_behind_a_wide_clip_changes_nearly_nothing(self):
        update = random_update(3)
        assert torch.allclose(sent_of([Clip(norm=1e6), Noise(multiplier=1e-15)], update), update, atol=1e-6)

    @pytest.mark.parametrize("keys", [{}, {"deviation": 1.0, "multiplier": 1.0}])
    def test_has_one_measure(self, keys):
        with pytest.raises(ValueError, match="noise has a deviation, or a multiplier of the clip norm; give one"):
            Noise(**keys)

    @pytest.mark.parametrize(
        "links",
        [
            [{"kind": "noise", "multiplier": 1.0}],
            [{"kind": "clip", "norm": 1.0}, {"kind": "half"}, {"kind": "noise", "multiplier": 1.0}],
        ],
    )
    def test_a_multiplier_is_of_the_clip_right_before_it(self, links):
        with pytest.raises(ConfigError, match="a multiplier of the clip norm, but no clip right before it"):
            tiny_config(tiny_method("fedavg", upload=links), privacy={"unit": "client"})


class TestPredictions:
    def test_with_noise_are_accepted_and_become_probabilities_again(self):
        rows = onto_simplex(torch.tensor([[0.5, 0.7, -0.9], [3.0, -1.0, 0.0], [0.2, 0.3, 0.5]]))
        assert torch.allclose(rows.sum(dim=1), torch.ones(3))
        assert float(rows.min()) >= 0
        assert torch.allclose(rows[2], torch.tensor([0.2, 0.3, 0.5]))
        assert rows[1].tolist() == [1.0, 0.0, 0.0]

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.floats(-5, 5), min_size=3, max_size=3))
    def test_the_nearest_probabilities_are_nearer_than_any_others(self, row):
        point = torch.tensor([row], dtype=torch.float64)
        nearest = onto_simplex(point)
        others = torch.distributions.Dirichlet(torch.ones(3, dtype=torch.float64)).sample((200,))
        assert float((nearest - point).norm()) <= float((others - point).norm(dim=1).min()) + 1e-9

    def test_noise_leaves_them_to_soft_labels(self):
        table = torch.eye(3)
        chain = Chain([Noise(deviation=5.0), SoftLabels(bits=3)])
        packed = chain.pack({"predictions": table}, replace(client_of(), bound=None)).tensors
        back = chain.unpack(packed, {"predictions": (3, 3)}, Task(1, 0, "mlp", RECEIVED), BANK)["predictions"]
        assert torch.allclose(back.sum(dim=1), torch.ones(3))


class TestTheNormThatIsLookedFor:
    def norms(self, clip, lengths, rounds):
        memory, seen = {}, []
        for number in range(rounds):
            view = make_view(BANK, memory=memory, round=number + 1)
            told = clip.broadcast(view, dict.fromkeys(range(len(lengths)), "mlp"))
            updates = []
            for client, length in enumerate(lengths):
                context = client_of(Key(number).child(client), told[client])
                said = clip.aside(random_update(client, length), context)
                updates.append(make_update(RECEIVED, client, extras=said))
            memory = clip.after_round(view, updates)
            seen.append(float(memory["mlp"]))
        return seen

    @pytest.mark.parametrize(("quantile", "expected"), [(0.25, 2.5), (0.5, 5.0), (0.75, 7.5)])
    def test_becomes_the_quantile(self, quantile, expected):
        lengths = [0.25 * n for n in range(1, 41)]
        clip = Clip(norm=20.0, quantile=quantile, rate=0.5, bit_deviation=0.0)
        assert self.norms(clip, lengths, 25)[-1] == pytest.approx(expected, rel=0.15)

    def test_also_with_noise_on_what_clients_say(self):
        lengths = [0.25 * n for n in range(1, 41)]
        found = self.norms(Clip(norm=1.0, quantile=0.5, bit_deviation=2.5), lengths, 50)
        assert sum(found[-20:]) / 20 == pytest.approx(5.0, rel=0.25)

    def test_moves_no_further_than_a_round_of_honest_clients_could(self):
        clip = Clip(norm=1.0, quantile=0.5, rate=0.2)
        view = make_view(BANK)
        farthest = torch.tensor(clip.aside_spec()[INSIDE].most)
        for liar in (farthest, -farthest):
            moved = clip.after_round(view, [make_update(RECEIVED, extras={INSIDE: liar})])["mlp"]
            assert math.exp(-0.1) - 1e-9 <= float(moved) <= math.exp(0.1) + 1e-9

    def test_is_what_updates_are_clipped_to_and_noise_is_measured_by(self):
        clip = Clip(norm=7.0, quantile=0.5)
        client = client_of(extras={f"upload/0/{NORM}": torch.tensor(0.5)})
        sent = sent_of([clip, Noise(multiplier=1e-9)], random_update(1, 3.0), client)
        assert float(sent.norm()) == pytest.approx(0.5, rel=1e-4)

    def test_every_model_has_its_own(self):
        clip = Clip(norm=1.0, quantile=0.5, bit_deviation=0.0)
        half = torch.tensor(0.5)
        said = {"mlp": half, "other": -half}
        updates = [make_update(RECEIVED, prototype=name, extras={INSIDE: bit}) for name, bit in said.items()]
        memory = clip.after_round(make_view(BANK), updates)
        assert float(memory["mlp"]) < 1.0 < float(memory["other"])

    def test_without_a_quantile_nothing_is_said_and_nothing_remembered(self):
        clip = Clip(norm=1.0)
        assert clip.aside(random_update(1), client_of()) == {}
        assert clip.after_round(make_view(BANK), [make_update(RECEIVED)]) == {}

    def test_what_is_said_survives_links_that_pack(self):
        chain = Chain([Clip(norm=1.0, quantile=0.5), Noise(multiplier=1.0), TopK(share=0.5)])
        client = client_of(extras={"upload/0/norm": torch.tensor(1.0)})
        packed = chain.pack({"weights": RECEIVED.flat}, client)
        assert set(packed.aside) == {"0/inside"} == set(chain.aside_spec())
        assert "weights" not in packed.tensors


class TestStatistics:
    def test_noise_of_counts_is_relative_to_one_example(self):
        link = Statistics(multiplier=4.0)
        counts = torch.full((500,), 100.0)
        found = link.beside({"local/label_counts": counts}, 1.0, client_of())["local/label_counts"]
        assert float((found - 100).std()) == pytest.approx(4.0, rel=0.15)

    def test_every_tensor_has_noise_of_its_own(self):
        zeros = torch.zeros(50)
        found = Statistics(norm=1.0, multiplier=1.0).beside({"a": zeros, "b": zeros}, None, client_of())
        assert not torch.isclose(found["a"], found["b"]).any()

    def test_the_payload_is_left_alone(self):
        assert torch.equal(sent_of([Statistics(norm=1.0, multiplier=1.0)], torch.zeros(SIZE)), torch.zeros(SIZE))

    def test_weights_are_not_touched_by_a_link_in_between(self):
        links = [Clip(norm=1.0), Statistics(norm=1.0, multiplier=1.0)]
        assert Chain(links).pack({"weights": RECEIVED.flat}, client_of()).bound == 1.0
