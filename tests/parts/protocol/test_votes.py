"""Votes: counted by hand, teachers on parts of a client's examples, noise, and inputs without a winner."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.core.secret_key import SecretKey
from fedfuse.core.weights import NOTHING, Weights
from fedfuse.experiment.run import Experiment
from fedfuse.parts.local.loop import train
from fedfuse.parts.local.objective import Hooks
from fedfuse.parts.protocol import Votes
from fedfuse.parts.protocol.nothing import MODEL
from fedfuse.runtime.predict import logits_on
from fedfuse.runtime.training import TrainingSettings
from tests.helpers import CLASSES, make_bank, make_client, make_examples, make_source, make_weights, tiny_config

pytestmark = pytest.mark.usefixtures("without_pictures")
ONE = torch.tensor(1.0)


def client_of(examples=12, seed=1, **more):
    bank = make_bank()
    weights = make_weights(bank, "mlp", seed)
    task = Task(1, 0, "mlp", weights)
    training, own = TrainingSettings(epochs=2, batch_size=4), make_examples(examples, seed)
    return make_client(task, bank.lend("mlp", weights), own, training, bank=bank, source=make_source(9), **more)


def answer(votes, client):
    return votes.answer(client, Weights.of(client.model)).predictions


class TestCounting:
    @pytest.mark.parametrize("clients", range(1, 50))
    def test_all_votes_are_enough_however_many_they_are(self, clients):
        """Six sixths, added up, are 0.9999999999999999."""
        said = torch.tensor([[0.0, 1.0, 0.0]])
        share = torch.tensor(1 / clients, dtype=torch.float64)
        assert bool(Votes(least=1.0).combine([said] * clients, [share] * clients).answered.all())
        share = torch.tensor(1 / (2 * clients), dtype=torch.float64)
        halves = [said, said.roll(1, dims=1)] * clients
        assert bool(Votes(least=0.5).combine(halves, [share] * len(halves)).answered.all())

    @settings(max_examples=40, deadline=None)
    @given(
        st.lists(st.lists(st.integers(0, 2), min_size=4, max_size=4), min_size=1, max_size=6),
        st.sampled_from([0.0, 0.5, 0.7, 1.0]),
    )
    def test_the_class_with_most_votes_wins_if_it_has_enough(self, ballots, least):
        tables = [torch.nn.functional.one_hot(torch.tensor(one), 3).float() for one in ballots]
        share = torch.tensor(1 / len(ballots), dtype=torch.float64)
        found = Votes(least=least).combine(tables, [share] * len(ballots))
        for place in range(4):
            counted = Counter(one[place] for one in ballots)
            most = max(counted.values())
            winners = [c for c, number in counted.items() if number == most]
            row = found.outputs[place]
            if most / len(ballots) >= least - 1e-12:
                assert row.sum() == 1
                assert int(row.argmax()) in winners
                assert found.answered[place]
            elif most / len(ballots) < least - 1e-9:
                assert not row.any()
                assert not found.answered[place]

    def test_a_vote_is_the_most_probable_class(self):
        client = client_of()
        said = answer(Votes(), client)
        expected = logits_on(client.source, client.model).argmax(dim=1)
        assert torch.equal(said.argmax(dim=1), expected)
        assert torch.equal(said.sum(dim=1), torch.ones(9))
        assert Votes().longest(9) == pytest.approx(float(said.norm()))


class TestTeachers:
    def test_each_is_trained_on_a_part_of_its_own(self):
        client = client_of()
        votes = Votes(teachers=3)
        expected = torch.zeros(9, CLASSES)
        order = torch.randperm(12, generator=client.key.child("teachers").torch())

        for number, part in enumerate(order.tensor_split(3)):
            model = client.bank.lend("mlp", client.start, role="by hand")
            own = replace(client.below("teacher", number), model=model, examples=client.examples.select(part))
            train(own, Hooks())
            said = logits_on(client.source, model).argmax(dim=1)
            expected[torch.arange(9), said] += 1
        assert torch.equal(answer(votes, client).argmax(dim=1), expected.argmax(dim=1))

    @settings(max_examples=10, deadline=None)
    @given(which=st.integers(0, 11), teachers=st.integers(2, 5))
    def test_an_example_moves_one_vote_about_each_input(self, which, teachers):
        """The counts of neighbours are at most sqrt(2) apart in every row: what the noise is measured by."""
        votes = Votes(teachers=teachers)

        def counts(examples):
            client = client_of()

            client = replace(client, examples=examples)
            return torch.stack([votes.as_sent(s) for s in votes._said(client, client.source)]).sum(dim=0)

        examples = make_examples(12, 1)
        other = examples.inputs.clone()
        other[which] = -7.0 * other[which]
        labels = examples.labels.clone()
        labels[which] = (labels[which] + 1) % CLASSES
        apart = counts(examples) - counts(type(examples)(other, labels))
        assert float(apart.norm(dim=1).max()) <= math.sqrt(2) + 1e-6
        assert float(apart.norm()) <= votes.sensitivity_of_votes(9) + 1e-6

    def test_a_model_that_has_seen_all_examples_teaches_none_of_them(self):
        """At later visits the client goes on with its own model; then one example would move all teachers' votes."""
        votes, client = Votes(teachers=3), client_of()
        state = votes.answer(client, Weights.of(client.model)).state
        said = []
        for seed in (2, 3):
            own = make_weights(client.bank, "mlp", seed)
            later = replace(client, task=replace(client.task, round=2, weights=NOTHING), start=own)
            later = replace(later, state={**state, MODEL: own.flat})
            said.append(torch.stack(list(votes._said(later, later.source))))
        assert torch.equal(*said)

    def test_more_teachers_than_examples_vote_as_they_began(self):
        said = answer(Votes(teachers=5), client_of(examples=2))
        assert torch.equal(said.sum(dim=1), torch.ones(9))

    def test_the_client_s_own_model_is_left_alone(self):
        client = client_of()
        before = Weights.of(client.model).flat.clone()
        answer(Votes(teachers=3, deviation=1.0), client)
        assert torch.equal(Weights.of(client.model).flat, before)


class TestNoise:
    def test_changes_votes_as_often_as_it_should(self):
        """One teacher, two classes that matter: the winner falls when the noise is larger than its one vote."""
        votes, changed, turns = Votes(deviation=1.0), 0, 200
        plain = answer(Votes(), client_of()).argmax(dim=1)
        for turn in range(turns):
            changed += int((answer(votes, client_of(key=Key(turn))).argmax(dim=1) != plain).sum())
        # P(max of two N(0,1) > 1 + N(0,1)), by sampling from numpy's generator instead of ours

        drawn = np.random.default_rng(0).normal(size=(200_000, 3))
        expected = float((drawn[:, 1:].max(axis=1) > 1 + drawn[:, 0]).mean())
        assert changed / (9 * turns) == pytest.approx(expected, abs=0.04)

    def test_comes_from_the_secret(self):

        votes = Votes(teachers=2, deviation=50.0)
        said = [answer(votes, replace(client_of(), own_secret=secret)) for secret in (None, SecretKey(1), SecretKey(2))]
        assert not torch.equal(said[0], said[1])
        assert not torch.equal(said[1], said[2])

    def test_what_it_gives_away_grows_with_the_inputs(self):
        votes = Votes(deviation=4.0)
        assert votes.release(8).multiplier == pytest.approx(1.0)
        assert votes.release(200).multiplier == pytest.approx(0.2)
        assert Votes().release(8) is None


class TestRuns:
    def test_a_student_learns_from_those_inputs_that_have_a_winner(self, tmp_path):
        method = {
            "name": "feded-w0",
            "scores": "uniform",
            "protocol": {"kind": "votes", "least": 0.9},
            "fuse": {"kind": "prediction_distillation", "distiller": {"steps": 20, "batch_size": 8, "loss": "mse"}},
        }
        result = Experiment(tiny_config(method)).run(tmp_path / "run")
        assert result.summary["updates_refused"] == 0
        assert not result.summary["untaught"]

    def test_where_nobody_agrees_nothing_is_taught(self, tmp_path):
        noise = [{"kind": "noise", "deviation": 0.001}]
        method = {
            "name": "feded-w0",
            "scores": "uniform",
            "upload": noise,
            "protocol": {"kind": "votes", "least": 1.0},
            "fuse": {"kind": "prediction_distillation", "distiller": {"steps": 20, "batch_size": 8}},
        }
        partition = {"kind": "step", "clients": 4, "major_classes": 1, "minor_per_class": 0}
        config = tiny_config(method, partition=partition, training={"epochs": 20, "batch_size": 8})
        result = Experiment(config).run(tmp_path / "run")
        assert len(result.history) == 2

    @pytest.mark.parametrize(
        ("protocol", "sentence"),
        [
            ({"least": 0.5, "bits_down": 1}, "which bits_down has no bits for"),
            ({"least": 0.5, "distillation": {"loss": "mse"}}, "which only distillation.loss kl passes over"),
            ({"output": "logits"}, "should be 'probabilities'"),
            ({"temperature": 0.1}, "temperature"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, protocol, sentence):
        with pytest.raises(ConfigError, match=sentence):
            tiny_config({"name": "feded-w0", "protocol": {"kind": "votes", **protocol}})
