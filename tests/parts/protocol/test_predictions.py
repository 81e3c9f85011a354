"""Predictions in rounds: what travels down, how clients distil it, which inputs a round is about."""

from __future__ import annotations

import pytest
import torch

from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.core.weights import NOTHING
from fedfuse.federation import Recipe
from fedfuse.federation.predictions import combined
from fedfuse.parts.protocol import ClientDistillation, Predictions
from fedfuse.parts.scores import ByReconstruction
from fedfuse.runtime.predict import logits_on
from tests.helpers import (
    CLASSES,
    make_bank,
    make_client,
    make_examples,
    make_federation,
    make_recipe,
    make_source,
    make_update,
    make_view,
    make_weights,
    played,
)  # fmt: skip

INPUTS = 40


def recipe(scores="examples", upload=(), **protocol):
    return Recipe.model_validate({"protocol": {"kind": "predictions", **protocol}, "scores": scores, "upload": upload})


def client_of(source, extras=None, number=2):
    bank = make_bank()
    weights = make_weights(bank, "mlp", 1)
    task = Task(number, 0, "mlp", weights, extras or {})
    return make_client(task, bank.lend("mlp", weights), make_examples(9), bank=bank, source=source, key=Key(3))


class TestConsensus:
    def test_of_the_last_round_travels_down(self):
        tasks = []

        def bend(pairs):
            return pairs

        federation = make_federation(recipe=recipe(distillation={}), source=INPUTS, bend=bend)
        engine = federation.engine
        original = engine.inner.train
        engine.inner.train = lambda given, states: (tasks.append(given), original(given, states))[1]
        first = played(federation, 1)
        played(federation, 1, first)
        assert all("protocol/consensus" not in task.extras for task in tasks[0])
        (memory,) = [first.server.memory["protocol"]["consensus"]]
        for task in tasks[1]:
            assert torch.equal(task.extras["protocol/consensus"], memory)
        assert memory.shape == (INPUTS, CLASSES)

    def test_bytes_both_ways(self):
        after = played(make_federation(recipe=recipe(distillation={}), source=INPUTS), 3)
        table = 4 * INPUTS * CLASSES
        size = 4 * make_bank().layout("mlp").size
        assert [r.bytes_up for r in after.server.history] == [4 * table] * 3
        assert [r.bytes_down for r in after.server.history] == [4 * size, 4 * table, 4 * table]

    def test_few_bits_both_ways(self):
        few = recipe(distillation={"of": "consensus"}, upload=[{"kind": "soft_labels"}], bits_down=4)
        after = played(make_federation(recipe=few, source=INPUTS), 2)
        assert [r.bytes_up for r in after.server.history] == [4 * INPUTS * 2 // 8] * 2
        assert after.server.history[1].bytes_down == 4 * INPUTS * CLASSES * 4 // 8

    def test_is_not_repeated_when_a_round_was_lost(self):
        protocol = Predictions(distillation=ClientDistillation())
        memory = {"consensus": torch.ones(INPUTS, CLASSES), "consensus_round": torch.tensor(2)}
        bank = make_bank()
        for number, sent in ((3, True), (4, False)):
            view = make_view(bank, round=number, memory=memory, source=make_source(INPUTS))
            assert ("consensus" in protocol.broadcast(view, {0: "mlp"})[0]) is sent

    def test_entropy_reduction_is_a_softmax_of_the_mean(self):
        said = [torch.rand(5, CLASSES) for _ in range(3)]
        got = Predictions(temperature=0.1).combine(said, [torch.tensor(1 / 3)] * 3)
        mean = torch.stack(said).mean(0)
        torch.testing.assert_close(got.outputs, torch.softmax(mean / 0.1, dim=1))
        assert not got.are_logits

    def test_mean_logits_become_log_probabilities(self):
        said = [torch.randn(5, CLASSES) for _ in range(3)]
        got = Predictions(output="logits").combine(said, [torch.tensor(1 / 3)] * 3)
        mean = torch.stack(said).mean(0)
        torch.testing.assert_close(got.log_probabilities, mean.log_softmax(dim=1))


class TestInputsOfARound:
    def test_both_ends_draw_the_same_and_each_round_others(self):
        protocol, source = Predictions(inputs=7), make_source(INPUTS)
        one, same, other = (protocol.public(source, Key(0), number).raw for number in (1, 1, 2))
        assert len(one) == 7
        assert torch.equal(one, same)
        assert not torch.equal(one, other)
        assert len(torch.unique(one, dim=0)) == 7

    def test_more_than_there_are_is_all(self):
        assert len(Predictions(inputs=1000).public(make_source(INPUTS), Key(0), 1)) == INPUTS

    def test_scores_are_given_once_about_all_and_used_for_the_drawn(self):
        weighted = {"inputs": 7, "scores": {"kind": "reconstruction", "epochs": 1}}
        after = played(make_federation(recipe=recipe(**weighted), source=INPUTS), 2)
        assert [r.bytes_up for r in after.server.history] == [4 * (4 * 7 * CLASSES + 4 * INPUTS), 4 * 4 * 7 * CLASSES]
        assert after.server.history[1].refused == ()

    def test_rows_of_the_scores_follow_the_inputs(self):
        protocol, source = Predictions(inputs=7), make_source(INPUTS)
        errors = torch.rand(2, INPUTS) + 0.1
        rows = [
            make_update(
                NOTHING,
                client=k,
                extras={
                    "protocol/predictions": torch.rand(7, CLASSES),
                    "scores/reconstruction_errors": errors[k],
                },
            )
            for k in range(2)
        ]
        asked = protocol.rows(INPUTS, Key(0), 1)
        method = make_recipe(protocol=protocol, scores=ByReconstruction())
        got = combined(method, asked, rows).outputs
        drawn = [int((source.raw == row).all(dim=1).nonzero()) for row in protocol.public(source, Key(0), 1).raw]
        powers = errors[:, drawn] ** -6
        shares = powers / powers.sum(0)
        expected = sum(shares[k][:, None] * rows[k].extras["protocol/predictions"] for k in range(2))
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-6)


class TestClientDistillation:
    @pytest.mark.parametrize("loss", ["kl", "mse", "mae"])
    @pytest.mark.parametrize("output", ["probabilities", "logits"])
    def test_brings_the_client_nearer_to_the_consensus(self, loss, output):
        source = make_source(INPUTS)
        taught = torch.randn(INPUTS, CLASSES, generator=torch.Generator().manual_seed(0))
        taught = taught if output == "logits" else taught.softmax(dim=1)
        protocol = Predictions(output=output, distillation=ClientDistillation(loss=loss, epochs=30, batch_size=8))
        client = client_of(source, {"consensus": taught})

        def distance():
            said = logits_on(source, client.model)
            return float(((said if output == "logits" else said.softmax(1)) - taught).abs().mean())

        before = distance()
        assert protocol.distil_before(client) is True
        assert distance() < before

    def test_kl_is_that_of_torch(self):
        logits, taught = torch.randn(6, CLASSES), torch.rand(6, CLASSES).softmax(dim=1)
        expected = sum(float((t * (t.log() - s.log_softmax(0))).sum()) for s, t in zip(logits, taught, strict=True)) / 6
        assert float(ClientDistillation()._loss(logits, taught, are_logits=False)) == pytest.approx(expected, rel=1e-5)

    def test_along_adds_the_loss_of_the_next_public_batch(self):
        source, taught = make_source(INPUTS), torch.rand(INPUTS, CLASSES).softmax(dim=1)
        protocol = Predictions(distillation=ClientDistillation(when="along", batch_size=INPUTS))
        client = client_of(source, {"consensus": taught})
        assert protocol.distil_before(client) is False
        with protocol.training(client) as extra_loss:
            log_student = client.model(source.inputs(source.all_indices())).log_softmax(dim=1)
            expected = (taught * (taught.log() - log_student)).sum(dim=1).mean()
            torch.testing.assert_close(extra_loss(), expected)

    def test_nothing_to_distil_is_no_loss(self):
        along = Predictions(distillation=ClientDistillation(when="along"))
        told = client_of(make_source(INPUTS), {"consensus": torch.ones(1)})
        for protocol, client in ((along, client_of(make_source(INPUTS))), (Predictions(), told)):
            with protocol.training(client) as extra_loss:
                assert extra_loss is None

    def test_a_client_may_go_on_with_what_it_distilled(self):
        """Then its own examples leave no trace in what it starts from: all clients keep the same copy."""
        copies = recipe(distillation={"keep": "distilled", "epochs": 2})
        after = played(make_federation(recipe=copies, source=INPUTS), 1)
        states = [state["protocol/model"] for state in after.clients.values()]
        assert all(torch.equal(state, states[0]) for state in states)


def test_bits_of_logits_are_refused():
    with pytest.raises(ValueError, match="bits of probabilities"):
        Predictions(output="logits", bits_down=2)
    with pytest.raises(ValueError, match="packs probabilities, but protocol predictions sends none"):
        recipe(output="logits", upload=[{"kind": "soft_labels", "bits": 2}])
