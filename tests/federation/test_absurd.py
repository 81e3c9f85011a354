"""Numbers that are finite and no model: they cost the one who sends them, and never the rounds after."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from fedfuse.core.weights import NOTHING, Weights
from fedfuse.federation.absurd import APART, BEYOND, Growth, size_of, unsound
from fedfuse.methods import METHODS
from fedfuse.models import Mlp
from fedfuse.parts.fuse import Distiller, EnsembleDistillation, Fused
from fedfuse.parts.local import ControlVariates, LabelLogits, Plain
from fedfuse.parts.merge import Mean, Merged, Momentum
from fedfuse.testing.trial import difference, through_a_checkpoint
from tests.helpers import Recorder, TinyNorm, make_bank, make_federation, make_recipe, make_update, make_weights, played

ATTACKER = 1
DISTILLATION = EnsembleDistillation(distiller=Distiller(steps=4, batch_size=8, evaluate_every=2))
RECIPES = {
    "fedavg": make_recipe(),
    "uniform": make_recipe(merge=Mean(weighting="uniform")),
    "fedavgm": make_recipe(merge=Momentum(beta=0.5)),
    "scaffold": make_recipe(local=ControlVariates()),
    "feddf": make_recipe(fuse=DISTILLATION),
}


class Attack:
    """One client's weights times a factor, in some rounds."""

    def __init__(self, factor, rounds=(1,), clients=(ATTACKER,)):
        self.factor, self.rounds, self.clients = factor, rounds, clients

    def __call__(self, pairs):
        now = pairs[0][0].round in self.rounds
        return [(self.scaled(u) if now and u.client in self.clients else u, s) for u, s in pairs]

    def scaled(self, update):
        return dataclasses.replace(update, weights=update.weights * self.factor)


def left_out(rounds=(1,)):
    return lambda pairs: [p for p in pairs if p[0].round not in rounds or p[0].client != ATTACKER]


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("factor", [1e4, -1e10, 1e30])
@pytest.mark.parametrize("rounds", [(1,), (1, 2, 3)])
def test_one_update_costs_itself_only(recipe, factor, rounds):
    """The others' result is that of a federation in which it was never heard, streamed or held."""
    heard = Recorder()
    common = {"recipe": RECIPES[recipe], "bank": make_bank(mlp=TinyNorm()), "source": 20}
    attacked = played(make_federation(**common, bend=Attack(factor, rounds), listener=heard))
    without = played(make_federation(**common, bend=left_out(rounds)))
    assert attacked.server.weights["mlp"].equals(without.server.weights["mlp"])
    assert set(attacked.clients) == set(without.clients)
    for record in attacked.server.history:
        assert record.refused == ((ATTACKER,) if record.round in rounds else ())
    told = [event for event in heard.of("update_refused") if event["round"] == 1]
    assert [event["client"] for event in told] == [ATTACKER]
    assert told[0]["reason"].startswith("weights")


@pytest.mark.parametrize("factor", [1e8, 1e30])
def test_a_control_variate_costs_its_client_only_too(factor):
    """Honest weights beside it; added to every client's gradients, it would stay for good."""

    def bend(pairs):
        extras = {"local/control_change": torch.full((43,), factor)}
        return [(dataclasses.replace(u, extras=extras) if u.client == ATTACKER else u, s) for u, s in pairs]

    attacked = played(make_federation(recipe=RECIPES["scaffold"], bend=bend))
    without = played(make_federation(recipe=RECIPES["scaffold"], bend=left_out((1, 2, 3))))
    assert attacked.server.weights["mlp"].equals(without.server.weights["mlp"])
    assert torch.equal(attacked.server.memory["local"]["mlp"], without.server.memory["local"]["mlp"])
    assert [record.refused for record in attacked.server.history] == [(ATTACKER,)] * 3


def test_a_refused_client_keeps_the_state_that_it_had(tmp_path):
    """In memory and in a store on the disk, where its new state was written already."""
    federation = make_federation(recipe=RECIPES["scaffold"], bend=Attack(1e30, rounds=(2,)))
    first = federation.advance(federation.start())
    before = first.clients[ATTACKER]["local/control"].clone()
    stored = through_a_checkpoint(first, tmp_path)
    for snapshot in (first, stored):
        after = federation.advance(snapshot)
        assert after.server.history[-1].refused == (ATTACKER,)
        assert torch.equal(after.clients[ATTACKER]["local/control"], before)


def test_one_that_never_had_a_state_has_none_afterwards(tmp_path):
    federation = make_federation(recipe=RECIPES["scaffold"], bend=Attack(1e30))
    stored = through_a_checkpoint(federation.start(), tmp_path)
    assert set(federation.advance(stored).clients) == {0, 2, 3}


@pytest.mark.parametrize("recipe", RECIPES)
def test_honest_rounds_are_what_they_were(recipe, monkeypatch):
    """Bit for bit what they are without any bound."""
    common = {"recipe": RECIPES[recipe], "bank": make_bank(a=TinyNorm(), b=Mlp(hidden=(5,))), "source": 20}
    bounded = played(make_federation(**common))
    monkeypatch.setattr(Growth, "refused", lambda _self: {})
    monkeypatch.setattr(Growth, "fault", lambda *_: None)
    assert difference(bounded, played(make_federation(**common))) is None


class TestGrowth:
    BANK = make_bank(mlp=TinyNorm(), other=Mlp(hidden=(5,)))

    def weights(self, prototype="mlp", seed=0):
        return make_weights(self.BANK, prototype, seed)

    def growth(self, *factors, zero=False):
        before = {name: self.weights(name) for name in ("mlp", "other")}
        if zero:
            before["mlp"] = before["mlp"] * 0.0
        growth = Growth(before)
        for client, factor in enumerate(factors):
            growth.take(make_update(self.weights() * factor, client))
        return growth

    def test_size_is_the_root_mean_square_of_parameters(self):
        weights = self.weights()
        parameters = weights.parameters.numpy().astype(np.float64)
        assert size_of(weights) == pytest.approx(np.sqrt(np.mean(parameters**2)), rel=1e-5)
        assert size_of(weights.with_buffers(weights.buffers * 1e6)) == size_of(weights)

    @pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e30])
    @pytest.mark.parametrize("place", [0, -1])
    def test_one_bad_number_anywhere_is_infinite(self, number, place):
        flat = self.weights().flat.clone()
        flat[place] = number
        assert size_of(Weights(flat, self.weights().layout)) == float("inf")

    @pytest.mark.parametrize(
        ("factors", "refused"),
        [
            ((1, 1, 1, 0.9 * APART), []),
            ((1, 1, 1, 1.1 * APART), [3]),
            ((1, 1e30), [1]),
            ((1e30,), [0]),
            ((1e6,), []),
            ((1e6, 1e6, 1e6, 1), []),
            ((1e9, 1e9, 1, 1, 1), [0, 1]),
            ((0, 0, 0, 0.9 * APART), []),
            ((), []),
        ],
    )
    def test_who_is_nothing_like_the_others_is_refused(self, factors, refused):
        """Alone, or with all others alike, nobody is: whether that can go on is seen by what they come to."""
        assert list(self.growth(*factors).refused()) == refused

    def test_a_network_may_begin_with_zeros(self):
        assert not self.growth(1, 1, 1, zero=True).refused()
        assert self.growth(1, zero=True).fault("mlp", self.weights()) is None

    @pytest.mark.parametrize(
        ("factor", "fault"),
        [
            (0.9 * BEYOND, None),
            (1e6, "weights were 1e+06 times as large as before"),
            (1e30, "weights were too large for their squares"),
            (float("nan"), "weights were not finite"),
        ],
    )
    def test_a_model_of_the_server(self, factor, fault):
        assert self.growth().fault("mlp", self.weights() * factor) == fault

    def test_a_message_without_weights_has_no_size(self):
        growth = self.growth()
        growth.take(make_update(NOTHING))
        assert not growth.refused()


class TestWhatTheServerMakes:
    """Whatever part makes it, it does not become the next round's, and the log says so."""

    def diverged(self, recipe, rounds=3, **options):
        heard = Recorder()
        federation = make_federation(recipe=recipe, listener=heard, **options)
        start = federation.start()
        after = played(federation, rounds, start)
        assert all(weights.is_finite() for weights in after.server.weights.values())
        return start, after, [event["reason"] for event in heard.of("model_diverged")]

    @pytest.mark.parametrize("merge", [Mean(server_rate=1e30), Mean(server_rate=1e9)])
    def test_a_server_step(self, merge):
        start, after, told = self.diverged(make_recipe(merge=merge))
        assert after.server.weights["mlp"].equals(start.server.weights["mlp"])
        assert len(told) == 3
        assert all(reason.endswith("after the merge; kept: last round's weights") for reason in told)
        assert all(record.prototypes["mlp"].untaught for record in after.server.history)
        assert all(record.refused == () for record in after.server.history), "clients could train in every round"

    def test_a_memory_of_the_merge(self):
        class Forgetful(Momentum):
            def merge(self, view, prototype, updates):
                merged = super().merge(view, prototype, updates)
                return Merged(merged.weights, {"velocity": merged.memory["velocity"] * float("nan")})

        start, after, told = self.diverged(make_recipe(merge=Forgetful()))
        assert after.server.weights["mlp"].equals(start.server.weights["mlp"])
        assert set(after.server.memory) == {"moves/mlp", "lengths/mlp"}, "of the merge nothing"
        assert told[0].startswith("what it remembers ('velocity') was not finite or far too large after the merge")

    @pytest.mark.parametrize("number", [float("nan"), 1e30])
    def test_statistics_of_batch_norm(self, number):
        """The last client's are taken as they are."""

        def bend(pairs):
            *others, (last, state) = pairs
            spoilt = last.weights.with_buffers(last.weights.buffers * 0 + number)
            return [*others, (dataclasses.replace(last, weights=spoilt), state)]

        recipe = make_recipe()
        _, after, _ = self.diverged(recipe, bank=make_bank(mlp=TinyNorm()), batch_norm="last", bend=bend)
        assert [record.refused for record in after.server.history] == [(3,)] * 3

    @pytest.mark.parametrize("factor", [1e6, 1e30, float("inf")])
    def test_a_student(self, factor):
        class Wild(EnsembleDistillation):
            def fuse(self, view, merged, teachers):
                fused = super().fuse(view, merged, teachers)
                return Fused({name: weights * factor for name, weights in fused.weights.items()}, fused.report)

        _, after, told = self.diverged(make_recipe(fuse=Wild(distiller=DISTILLATION.distiller)), source=20)
        assert after.server.weights["mlp"].equals(played(make_federation()).server.weights["mlp"])
        assert len(told) == 3
        assert all(reason.endswith("after the fusion; kept: merged weights") for reason in told)

    @pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e30])
    def test_what_an_objective_remembers(self, number):
        class Bad(Plain):
            def after_round(self, view, updates, weights):  # noqa: ARG002
                good = torch.tensor([1.0, view.round])
                return {"good": good} if view.round != 2 else {"good": good, "bad": torch.tensor([0.0, number])}

        heard = Recorder()
        federation = make_federation(recipe=make_recipe(local=Bad()), listener=heard)
        first = played(federation, 1)
        second = federation.advance(first)
        assert second.server.memory["local"] == first.server.memory["local"]
        (event,) = heard.of("memory_diverged")
        assert (event["round"], event["part"]) == (2, "local")
        assert "'bad'" in event["reason"]
        assert federation.advance(second).server.memory["local"]["good"].tolist() == [1.0, 3.0]

    def test_a_mean_that_nobody_can_have_is_no_bad_number(self):
        """Label logits are NaN for labels that nobody has; the rest must be well all the same."""
        memory = {"0": torch.tensor([[float("nan")], [1.0]])}
        assert unsound(memory, {}, LabelLogits.nan_is_no_value) is None
        assert unsound(memory, {}) == "0"
        assert unsound({"0": torch.tensor([float("nan"), float("inf")])}, {}, nan_is_no_value=True) == "0"
        assert unsound(memory, memory) is None, "what is remembered already is not looked at again"
        assert unsound({"counts": torch.tensor([2**62])}, {}) is None


@pytest.mark.parametrize("name", ["fedgen", "fd", "scaffold", "fedgkd", "moon", "fedavgm"])
def test_methods_that_remember_are_not_disturbed(name):
    heard = Recorder()
    recipe = METHODS[name].recipe
    bank = make_bank(mlp=Mlp(hidden=(5,), projection_head=4 if name == "moon" else None))
    played(make_federation(recipe=recipe, bank=bank, source=20, validation=20, listener=heard))
    assert not heard.of("memory_diverged")
    assert not heard.of("update_refused")
    assert not heard.of("model_diverged")


class TestWhatIsSaid:
    def test_a_round_in_which_nobody_counted(self):
        heard = Recorder()
        played(make_federation(bend=Attack(float("nan"), (2,), range(4)), listener=heard))
        (event,) = heard.of("nobody_counted")
        assert (event["round"], event["asked"], event["reason"]) == (2, 4, "4 refused")

    def test_a_round_in_which_most_were_refused(self):
        heard = Recorder()
        played(make_federation(bend=Attack(float("nan"), (2,), (0, 1, 3)), listener=heard))
        (event,) = heard.of("mostly_refused")
        assert (event["round"], event["refused"], event["answers"]) == (2, 3, 4)

    def test_of_an_honest_run_nothing(self):
        heard = Recorder()
        after = played(make_federation(listener=heard))
        said = {entry["event"] for entry in heard.entries}
        assert said == {"tick", "round_started", "client_finished", "round_finished"}
        for record in after.server.history:
            told = record.to_json()
            assert not {"absent", "late", "joined"} & told.keys()
            assert "untaught" not in told["prototypes"]["mlp"]
