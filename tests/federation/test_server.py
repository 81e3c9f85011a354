"""The laws of a round: client order, refusals, the ledger, and what goes from round to round."""

from __future__ import annotations

import dataclasses
from statistics import fmean
from typing import ClassVar, Literal

import numpy as np
import pytest
import torch

from fedfuse.core.weights import Weights, mean
from fedfuse.experiment.assembly import build
from fedfuse.federation import EvaluationSettings
from fedfuse.federation.events import EventLog
from fedfuse.methods import METHODS
from fedfuse.models import Mlp
from fedfuse.parts.fuse import Distiller, EnsembleDistillation
from fedfuse.parts.local import Hooks, Objective
from fedfuse.parts.merge import Mean, Momentum
from fedfuse.parts.protocol import NoExchange, Predictions
from fedfuse.parts.scores import ByLabels
from fedfuse.parts.screen import DropWorst, Screen, Screened
from fedfuse.parts.upload import Clip, TopK
from fedfuse.runtime.batches import epoch_batches
from fedfuse.runtime.optimizers import Sgd
from fedfuse.testing.trial import through_a_checkpoint
from tests.helpers import (
    Recorder,
    TinyNorm,
    make_bank,
    make_examples,
    make_federation,
    make_recipe,
    played,
    tiny_config,
    without_seconds,
)

DISTILLATION = EnsembleDistillation(distiller=Distiller(steps=4, batch_size=8, evaluate_every=2))


def same_weights(one, other):
    return all(one.server.weights[p].equals(other.server.weights[p]) for p in one.server.weights)


def changed(update, **changes):
    return dataclasses.replace(update, **changes)


def broken(update):
    return changed(update, weights=update.weights * float("nan"))


class TestOneRound:
    def test_is_fedavg_by_hand(self):
        """Every client's work asked from the engine directly, averaged by numpy."""
        federation = make_federation(bank=make_bank(mlp=TinyNorm()))
        start = federation.start()
        answers = []

        def bend(pairs):
            answers.extend(update for update, _ in pairs)
            return pairs

        after = played(make_federation(bank=make_bank(mlp=TinyNorm()), bend=bend), 1, start)
        sizes = [8 + 3 * client for client in range(4)]
        matrix = np.stack([u.weights.flat.numpy().astype(np.float64) for u in answers])
        expected = np.average(matrix, axis=0, weights=sizes)
        np.testing.assert_allclose(after.server.weights["mlp"].flat.numpy(), expected, rtol=1e-6, atol=1e-8)
        assert [u.examples for u in answers] == sizes

    def test_one_client_with_all_data_is_centralised_training(self):
        federation = make_federation(clients=1)
        after = played(federation, 2)
        model = make_bank().lend("mlp", federation.start().server.weights["mlp"]).train()
        examples = make_examples(8, seed=0)
        for number in (1, 2):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
            key = federation.key.child("round", number, "client", 0, "batches", 0)
            for where in epoch_batches(8, 4, key):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(examples.inputs[where]), examples.labels[where]).backward()
                optimizer.step()
        assert after.server.weights["mlp"].equals(Weights.of(model))

    def test_the_start_depends_on_the_key_only(self):
        assert same_weights(make_federation().start(), make_federation(recipe=make_recipe(merge=Momentum())).start())

    def test_the_snapshot_before_is_left_as_it_was(self):
        federation = make_federation(recipe=make_recipe(merge=Momentum(beta=0.5)))
        before = played(federation, 1)
        digest, memory = before.server.weights["mlp"].sha256(), before.server.memory["merge/mlp"]["velocity"].clone()
        one, other = federation.advance(before), federation.advance(before)
        assert same_weights(one, other)
        assert before.server.weights["mlp"].sha256() == digest
        assert torch.equal(before.server.memory["merge/mlp"]["velocity"], memory)
        assert before.server.round == 1


class TestClientOrder:
    @pytest.mark.parametrize(
        "recipe",
        [
            make_recipe(),
            make_recipe(merge=Momentum(beta=0.5), screen=(DropWorst(),)),
            make_recipe(fuse=DISTILLATION),
        ],
        ids=["fedavg", "momentum+drop_worst", "feddf"],
    )
    @pytest.mark.parametrize("order", [lambda p: p[::-1], lambda p: p[2:] + p[:2], lambda p: [p[1], p[3], p[0], p[2]]])
    def test_arrival_does_not_matter(self, recipe, order):
        bank = make_bank(a=TinyNorm(), b=Mlp(hidden=(5,)))
        common = {"bank": bank, "recipe": recipe, "validation": 20, "source": 20, "batch_norm": "last"}
        in_order, bent = played(make_federation(**common)), played(make_federation(**common, bend=order))
        assert same_weights(in_order, bent)
        assert without_seconds([r.to_json() for r in in_order.server.history]) == without_seconds(
            [r.to_json() for r in bent.server.history]
        )


class TestRefusals:
    def test_an_unsound_update_is_refused_and_the_round_goes_on(self):
        heard = Recorder()

        def bend(pairs):
            return [(broken(update) if update.client == 2 else update, state) for update, state in pairs]

        def leave_out(pairs):
            return [pair for pair in pairs if pair[0].client != 2]

        refused = played(make_federation(bend=bend, listener=heard), 1)
        silent = played(make_federation(bend=leave_out), 1)
        assert same_weights(refused, silent)
        assert refused.server.history[0].refused == (2,)
        (event,) = heard.of("update_refused")
        assert (event["client"], event["round"], event["reason"]) == (2, 1, "weights are not finite")

    def test_duplicates_and_strangers_are_refused(self):
        heard = Recorder()

        def bend(pairs):
            (first, state), *rest = pairs
            worse = changed(first, weights=first.weights * 100.0)
            return [(first, state), (worse, state), (changed(first, client=99), state), *rest]

        bent = played(make_federation(bend=bend, listener=heard), 1)
        assert same_weights(bent, played(make_federation(), 1))
        assert [event["client"] for event in heard.of("update_refused")] == [0, 99]
        assert all("not open" in event["reason"] for event in heard.of("update_refused"))

    def test_a_client_that_was_not_sampled_is_a_stranger(self):
        heard = Recorder()
        (record,) = played(make_federation(clients_per_round=2), 1).server.history
        idle = next(client for client in range(4) if client not in record.clients)

        def bend(pairs):
            return [(changed(u, client=idle) if u.client == record.clients[0] else u, state) for u, state in pairs]

        (record,) = played(make_federation(clients_per_round=2, bend=bend, listener=heard), 1).server.history
        assert [event["client"] for event in heard.of("update_refused")] == [idle]
        assert (record.refused, record.late) == ((), record.clients[:1]), "it was not refused: it never answered"

    def test_an_answer_of_another_round_is_refused(self):
        heard = Recorder()
        played(make_federation(bend=lambda pairs: [(changed(u, round=9), s) for u, s in pairs], listener=heard), 1)
        assert len(heard.of("update_refused")) == 4

    @pytest.mark.parametrize("fuse", [None, DISTILLATION])
    @pytest.mark.parametrize("bend", [lambda pairs: [(broken(u), s) for u, s in pairs], lambda _: []])
    def test_when_all_are_refused_the_weights_stay(self, fuse, bend):
        recipe = make_recipe(merge=Momentum(beta=0.5), screen=(DropWorst(),), **({"fuse": fuse} if fuse else {}))
        federation = make_federation(recipe=recipe, bend=bend, validation=20, source=20)
        start = federation.start()
        after = played(federation, 2, start)
        assert same_weights(start, after)
        assert after.server.round == 2
        record = after.server.history[-1]
        assert (record.refused or record.late) == (0, 1, 2, 3)
        assert record.training_loss is None
        assert record.bytes_up in (0, record.bytes_down)
        assert record.bytes_down > 0
        assert record.prototypes["mlp"].accuracy is not None

    def test_an_update_without_metrics_is_as_good_as_any(self):
        bent = make_federation(bend=lambda pairs: [(changed(u, metrics={}), s) for u, s in pairs])
        after = played(bent, 1)
        assert same_weights(after, played(make_federation(), 1))
        assert after.server.history[0].training_loss is None

    def test_metrics_cannot_pose_as_fields_of_an_event(self):
        def bend(pairs):
            return [(changed(u, metrics={"loss": 1.0, "round": 7.0, "client": 3.0}), s) for u, s in pairs]

        assert same_weights(played(make_federation(bend=bend), 1), played(make_federation(), 1))

    def test_a_refused_clients_state_is_not_kept(self):
        def bend(pairs):
            return [(broken(u) if u.client == 1 else u, {"x": torch.ones(1)}) for u, _ in pairs]

        assert set(played(make_federation(bend=bend), 1).clients) == {0, 2, 3}


class TestScreens:
    class OnlyFirst(Screen):
        kind: Literal["only_first"] = "only_first"

        def screen(self, view, updates):  # noqa: ARG002
            out = {u.client: "not first" for u in updates.counted[1:]}
            return Screened(updates.counted[:1], updates.teachers[:1], out)

    class NoTeacher(Screen):
        kind: Literal["no_teacher"] = "no_teacher"

        def screen(self, view, updates):  # noqa: ARG002
            return Screened(updates.counted, ())

    def test_who_is_screened_does_not_count_and_is_named(self):
        heard, answers = Recorder(), []

        def bend(pairs):
            answers.extend(update for update, _ in pairs)
            return pairs

        federation = make_federation(recipe=make_recipe(screen=(self.OnlyFirst(),)), bend=bend, listener=heard)
        after = played(federation, 1)
        assert after.server.weights["mlp"].equals(answers[0].weights)
        assert after.server.history[0].screened == (1, 2, 3)
        assert after.server.history[0].refused == ()
        assert [e["client"] for e in heard.of("client_screened")] == [1, 2, 3]

    def test_without_teachers_the_merge_is_the_result(self):
        recipe = make_recipe(screen=(self.NoTeacher(),), fuse=DISTILLATION)
        after = played(make_federation(recipe=recipe, source=20), 1)
        assert same_weights(after, played(make_federation(), 1))
        assert after.server.history[0].ensemble_accuracy is None


class TestLedger:
    def test_bytes_are_four_per_parameter_and_buffer_each_way(self):
        bank = make_bank(a=TinyNorm(), b=Mlp(hidden=(5,)))
        size = {p: bank.layout(p).size for p in ("a", "b")}
        assert size == {"a": (4 * 6 + 6) + 12 + (6 * 3 + 3) + 12, "b": (4 * 5 + 5) + (5 * 3 + 3)}
        after = played(make_federation(bank=bank, clients=5, clients_per_round=3), 2)
        prototype_of = make_federation(bank=bank, clients=5).prototypes
        for record in after.server.history:
            expected = sum(4 * size[prototype_of[client]] for client in record.clients)
            assert len(record.clients) == 3
            assert record.bytes_up == record.bytes_down == expected

    def test_what_is_refused_has_travelled_too(self):
        def bend(pairs):
            return [(broken(u) if u.client == 1 else u, s) for u, s in pairs]

        heard = Recorder()
        (record,) = played(make_federation(bend=bend, listener=heard), 1).server.history
        assert record.refused == (1,)
        assert record.bytes_up == record.bytes_down
        assert [event["bytes_up"] for event in heard.of("update_refused")] == [record.bytes_up // 4]

    def test_answers_that_nobody_asked_for_are_counted_as_well(self):
        (record,) = played(make_federation(bend=lambda pairs: [*pairs, *pairs]), 1).server.history
        assert record.bytes_up == 2 * record.bytes_down

    def test_events_and_rounds_count_the_same(self):
        for name in ("centralised", "fedavg", "feded-w0", "scaffold"):
            heard, recipe = Recorder(), METHODS[name].recipe
            parties = 1 if recipe.pooled else 4
            federation = make_federation(recipe=recipe, source=20, listener=heard, clients=parties)
            history = played(federation, 2).server.history
            for record in history:
                told = [e["bytes_up"] for e in heard.of("client_finished") if e["round"] == record.round]
                assert sum(told) == record.bytes_up


class TestHeterogeneous:
    @pytest.mark.parametrize("fuse", [None, "fuse", "keep"])
    def test_an_absent_prototype_moves_only_if_the_fusion_teaches_it(self, fuse):
        bank = make_bank(a=TinyNorm(), b=Mlp(hidden=(5,)), c=Mlp(hidden=()))
        recipes = [make_recipe(), make_recipe(merge=Momentum())]
        if fuse:
            recipes = [make_recipe(fuse=DISTILLATION.model_copy(update={"absent": fuse}), merge=Momentum())]
        for recipe in recipes:
            federation = make_federation(bank=bank, clients=6, clients_per_round=1, recipe=recipe, source=20)
            snapshot = federation.start()
            for _ in range(3):
                after = federation.advance(snapshot)
                (client,) = after.server.history[-1].clients
                present = federation.prototypes[client]
                for prototype in "abc":
                    stayed = after.server.weights[prototype].equals(snapshot.server.weights[prototype])
                    assert stayed == (prototype != present and fuse != "fuse")
                snapshot = after

    def test_without_fusion_prototypes_are_independent(self):
        """Each one's result is the plain average of its own clients."""
        answers = []

        def bend(pairs):
            answers.extend(update for update, _ in pairs)
            return pairs

        bank = make_bank(a=TinyNorm(), b=Mlp(hidden=(5,)))
        after = played(make_federation(bank=bank, bend=bend), 1)
        for prototype in "ab":
            own = [u for u in answers if u.prototype == prototype]
            assert len(own) == 2
            expected = mean([u.weights for u in own], [float(u.examples) for u in own])
            assert after.server.weights[prototype].equals(expected)


class TestRecord:
    def test_accuracies_are_of_the_weights_before_and_after_fusion(self):
        federation = make_federation(recipe=make_recipe(fuse=DISTILLATION), source=30)
        after = played(federation, 1)
        (record,) = after.server.history
        entry = record.prototypes["mlp"]
        merged = played(make_federation(), 1).server.weights["mlp"]
        score = federation.test.score(make_bank().lend("mlp", after.server.weights["mlp"]))
        assert (entry.accuracy, entry.loss) == (score.accuracy, score.loss)
        assert entry.accuracy_before_fusion == federation.test.score(make_bank().lend("mlp", merged)).accuracy
        assert entry.fusion["steps"] == 4

    def test_where_there_was_no_fusion_there_is_no_before(self):
        """Neither without any, nor where it makes a student out of nothing but predictions."""
        for name in ("fedavg", "1-ensemble", "fedma", "feded-w0", "ds-fl", "local-only"):
            federation = make_federation(recipe=METHODS[name].recipe, source=30, validation=10)
            records = played(federation, 2).server.history
            assert [record.prototypes["mlp"].accuracy_before_fusion for record in records] == [None, None]

    def test_ensemble_accuracy_is_that_of_the_mean_logits(self):
        answers = []

        def bend(pairs):
            answers.extend(update for update, _ in pairs)
            return pairs

        federation = make_federation(recipe=make_recipe(fuse=DISTILLATION), source=30, bend=bend)
        (record,) = played(federation, 1).server.history
        bank, test = make_bank(), federation.test.examples
        logits = [bank.lend("mlp", u.weights).eval()(test.inputs).detach() for u in answers]
        expected = (torch.stack(logits).mean(0).argmax(1) == test.labels).double().mean()
        assert record.ensemble_accuracy == pytest.approx(float(expected))

    def test_training_loss_is_the_mean_of_the_clients(self):
        heard = Recorder()
        (record,) = played(make_federation(listener=heard), 1).server.history
        assert record.training_loss == fmean(event["metrics"]["loss"] for event in heard.of("client_finished"))

    def test_evaluation_every_second_round_and_in_the_last(self):
        target = EvaluationSettings(every=2, ensemble=False)
        federation = make_federation(target=target, rounds=5, recipe=make_recipe(fuse=DISTILLATION), source=20)
        history = played(federation, 5).server.history
        assert [r.prototypes["mlp"].accuracy is not None for r in history] == [False, True, False, True, True]
        assert all(r.ensemble_accuracy is None for r in history)

    def test_events_of_a_round(self):
        heard = Recorder()
        played(make_federation(listener=heard), 2)
        written = [e["event"] for e in heard.entries if e["event"] != "tick"]
        assert written == (["round_started"] + ["client_finished"] * 4 + ["round_finished"]) * 2

    def test_batch_policy_evaluates_with_batch_statistics(self):
        bank = make_bank(mlp=TinyNorm())
        federation = make_federation(bank=bank, batch_norm="batch")
        after = played(federation, 1)
        model = bank.lend("mlp", after.server.weights["mlp"])
        plain = dataclasses.replace(federation.test, batch_statistics=False)
        assert after.server.history[0].prototypes["mlp"].loss == federation.test.score(model).loss
        assert federation.test.score(model).loss != plain.score(model).loss

    def test_batch_policy_holds_wherever_models_are_judged(self):
        """On the validation split too: for screens, weights of teachers, and which student is kept."""
        policies = {"average": False, "batch": True}
        for policy, expected in policies.items():
            federation = build(tiny_config("feddf", federation={"batch_norm": policy}), EventLog()).federation
            assert federation.test.batch_statistics == federation.validation.batch_statistics == expected

    def test_reestimate_uses_the_source(self):
        bank = make_bank(mlp=TinyNorm())
        plain, fresh = (
            played(make_federation(bank=bank, batch_norm=policy, source=40), 1).server.weights["mlp"]
            for policy in ("average", "reestimate")
        )
        assert torch.equal(plain.parameters, fresh.parameters)
        assert not torch.equal(plain.buffers, fresh.buffers)


class Remembering(Objective):
    """Sends a number down, gets one up, keeps one at each client and a few on the server; all of them matter."""

    kind: Literal["remembering"] = "remembering"

    def begin(self, client):
        return _RememberingHooks(client)

    def broadcast(self, view, chosen):
        sent = view.memory.get("total", torch.zeros(()))
        return {client: {"sent": sent} for client in chosen}

    def update_spec(self, bank, prototype):  # noqa: ARG002
        return {"seen": ()}

    def after_round(self, view, updates, weights):
        before = view.memory.get("total", torch.zeros(()))
        total = before + sum(float(u.extras["seen"]) for u in updates)
        return {"total": total, "newest": weights["mlp"].flat, "older": view.weights["mlp"].parameters}


class _RememberingHooks(Hooks):
    def __init__(self, client):
        self.model, self.sent = client.model, client.received["sent"]
        self.visits = client.state.get("visits", torch.zeros(())) + 1

    def on_step_end(self):
        with torch.no_grad():
            for p in self.model.parameters():
                p.add_(1e-3 * self.visits + 1e-5 * self.sent)

    def extras(self):
        return {"seen": self.visits.clone()}

    def state(self):
        return {"visits": self.visits}


class TestObjectiveSeam:
    RECIPE = make_recipe(local=Remembering(), merge=Mean())

    def test_extras_state_and_memory_go_where_they_belong(self):
        heard = Recorder()
        federation = make_federation(recipe=self.RECIPE, clients_per_round=3, rounds=5, listener=heard)
        after = played(federation, 5)
        visits, total = dict.fromkeys(range(4), 0), 0
        for record in after.server.history:
            for client in record.clients:
                visits[client] += 1
                total += visits[client]
            assert record.bytes_down == record.bytes_up == 3 * (4 * make_bank().layout("mlp").size + 4)
        assert {c: int(state["local/visits"]) for c, state in after.clients.items()} == {
            c: v for c, v in visits.items() if v
        }
        assert int(after.server.memory["local"]["total"]) == total
        assert torch.equal(after.server.memory["local"]["newest"], after.server.weights["mlp"].flat)

    def test_refused_updates_are_not_debriefed(self):
        def bend(pairs):
            return [(broken(u) if u.client == 1 else u, s) for u, s in pairs]

        after = played(make_federation(recipe=self.RECIPE, bend=bend), 1)
        assert int(after.server.memory["local"]["total"]) == 3

    @pytest.mark.parametrize("stop", [1, 2, 4])
    def test_it_survives_a_checkpoint_exactly(self, tmp_path, stop):
        def federation():
            return make_federation(recipe=self.RECIPE, clients_per_round=2, rounds=5)

        straight = played(federation(), 5)
        resumed = played(federation(), 5 - stop, through_a_checkpoint(played(federation(), stop), tmp_path))
        assert same_weights(straight, resumed)
        for name, tensor in straight.server.memory["local"].items():
            assert torch.equal(resumed.server.memory["local"][name], tensor), name
        assert {c: int(s["local/visits"]) for c, s in straight.clients.items()} == {
            c: int(s["local/visits"]) for c, s in resumed.clients.items()
        }


class Namesake(Objective):
    """Says a name of another part wherever an objective may say one; sees and gets back what it said, and no more."""

    kind: Literal["namesake"] = "namesake"
    name: str

    def begin(self, client):
        return _NamesakeHooks(self, client)

    def broadcast(self, view, chosen):
        assert set(view.memory) <= {self.name}
        return {client: {self.name: torch.tensor(10.0 * view.round + client)} for client in chosen}

    def update_spec(self, bank, prototype):  # noqa: ARG002
        return {self.name: ()}

    def after_round(self, view, updates, weights):  # noqa: ARG002
        assert all(set(update.extras) == {self.name} for update in updates)
        return {self.name: torch.stack([update.extras[self.name] for update in updates])}


class _NamesakeHooks(Hooks):
    def __init__(self, objective, client):
        number, who = client.task.round, client.task.client
        assert set(client.received) == {objective.name}
        assert float(client.received[objective.name]) == 10 * number + who
        assert set(client.state) == ({objective.name} if number > 1 else set())
        assert number == 1 or float(client.state[objective.name]) == 100 * (number - 1) + who
        self.name, self.number, self.who = objective.name, number, who

    def extras(self):
        return {self.name: torch.tensor(1000.0 * self.number + self.who)}

    def state(self):
        return {self.name: torch.tensor(100.0 * self.number + self.who)}


class TestNamesApart:
    """An objective may call its tensors what it likes: other parts' never meet them."""

    WIRES: ClassVar = {
        "nothing": ({"protocol": NoExchange()}, {"protocol/model"}),
        "predictions": ({"protocol": Predictions(), "scores": ByLabels()}, {"protocol/model"}),
        "first link": ({"upload": (TopK(share=0.3),)}, {"upload/0/error"}),
        "second link": ({"upload": (Clip(norm=0.5), TopK(share=0.3))}, {"upload/1/error"}),
    }

    @pytest.mark.parametrize("wire", WIRES)
    @pytest.mark.parametrize(
        "name",
        ["model", "protocol/model", "upload/0/error", "0/error", "error", "local/model", "predictions", "label_counts"],
    )
    def test_everybody_keeps_its_own_over_two_rounds(self, wire, name, tmp_path):
        parts, kept = self.WIRES[wire]
        federation = make_federation(recipe=make_recipe(local=Namesake(name=name), **parts), source=12)
        plain = make_federation(recipe=make_recipe(**parts), source=12)
        after, expected = federation.start(), plain.start()
        for number in (1, 2):
            after, expected = federation.advance(after), plain.advance(expected)
            assert after.server.history[-1].refused == ()
            assert same_weights(after, expected)
            assert set(after.clients) == set(expected.clients) == {0, 1, 2, 3}
            for client, state in after.clients.items():
                assert set(state) == {*kept, f"local/{name}"}
                assert set(expected.clients[client]) == kept
                assert all(torch.equal(state[other], expected.clients[client][other]) for other in kept)
                assert float(state[f"local/{name}"]) == 100 * number + client
            assert set(after.server.memory) == {*expected.server.memory, "local"}
            for part, memory in expected.server.memory.items():
                assert set(after.server.memory[part]) == set(memory)
                assert all(torch.equal(after.server.memory[part][key], tensor) for key, tensor in memory.items())
            assert after.server.memory["local"][name].tolist() == [1000.0 * number + client for client in range(4)]
            after = through_a_checkpoint(after, tmp_path / str(number))


class TestDivergence:
    """Weights that are not finite never leave the round in which they came about."""

    WILD = EnsembleDistillation(
        distiller=Distiller(
            steps=60, batch_size=8, loss="mse", optimizer=Sgd(learning_rate=1e4), schedule="constant", evaluate_every=20
        )
    )

    def test_a_student_that_diverges_leaves_the_merged_weights(self):
        heard = Recorder()
        federation = make_federation(recipe=make_recipe(fuse=self.WILD), source=30, listener=heard)
        plain = make_federation()
        assert played(federation, 3).server.weights["mlp"].equals(played(plain, 3).server.weights["mlp"])
        told = heard.of("model_diverged")
        assert [event["round"] for event in told] == [1, 2, 3]
        assert told[0]["reason"] == "weights were not finite after step 20 of the distillation; kept: merged weights"
        assert not heard.of("update_refused")
        assert heard.of("round_finished")[0]["prototypes"]["mlp"]["fusion"]["diverged_at"] == 20

    def test_with_a_validation_split_too(self):
        federation = make_federation(recipe=make_recipe(fuse=self.WILD), source=30, validation=20)
        after = played(federation, 3)
        assert after.server.weights["mlp"].is_finite()
        assert all(record.refused == () for record in after.server.history)

    def test_one_without_clients_keeps_its_last_weights(self):
        bank, heard = make_bank(mlp=Mlp(hidden=(5,)), big=Mlp(hidden=(9,))), Recorder()
        recipe = make_recipe(fuse=self.WILD)
        federation = make_federation(bank=bank, recipe=recipe, source=30, listener=heard, shares={"big": 0})
        before = federation.start()
        after = federation.advance(before)
        assert after.server.weights["big"].equals(before.server.weights["big"])
        kept = {event["prototype"]: event["reason"].rpartition(": ")[2] for event in heard.of("model_diverged")}
        assert kept == {"mlp": "merged weights", "big": "last round's weights"}

    def test_a_merge_that_diverges_keeps_last_rounds_weights_and_memory(self):
        class Wild(Momentum):
            def merge(self, view, prototype, updates):
                merged = super().merge(view, prototype, updates)
                if view.round != 2:
                    return merged
                nowhere = torch.full_like(merged.weights.flat, float("inf"))
                return type(merged)(Weights(nowhere, merged.weights.layout), {"velocity": nowhere})

        heard = Recorder()
        federation = make_federation(recipe=make_recipe(merge=Wild()), listener=heard)
        first = played(federation, 1)
        second = federation.advance(first)
        assert second.server.weights["mlp"].equals(first.server.weights["mlp"])
        assert torch.equal(second.server.memory["merge/mlp"]["velocity"], first.server.memory["merge/mlp"]["velocity"])
        assert [event["round"] for event in heard.of("model_diverged")] == [2]
        assert federation.advance(second).server.weights["mlp"].is_finite()


class TestWhatTheServerItselfRemembers:
    RECIPE = make_recipe(protocol=NoExchange())

    def federation(self):
        return make_federation(recipe=self.RECIPE, clients_per_round=2, rounds=4)

    def test_a_run_goes_on_from_the_tables_of_all_clients_that_older_checkpoints_have(self):
        straight, before = played(self.federation(), 4), played(self.federation(), 2)
        latest = before.server.memory["server"]["latest_scores"]
        everybody = torch.full((4, 2), torch.nan, dtype=torch.float64)
        everybody[latest[:, 0].long()] = latest[:, 1:]
        older = {"server": {"client_scores": everybody, "visits": torch.ones(4, dtype=torch.long)}}
        resumed = played(
            self.federation(), 2, dataclasses.replace(before, server=dataclasses.replace(before.server, memory=older))
        )
        assert [r.prototypes for r in resumed.server.history] == [r.prototypes for r in straight.server.history]
        assert [r.bytes_down for r in resumed.server.history] == [r.bytes_down for r in straight.server.history]
        assert resumed.server.memory["server"].keys() == {"latest_scores"}

    def test_nothing_where_nobody_is_measured(self):
        assert "server" not in played(make_federation(), 1).server.memory
