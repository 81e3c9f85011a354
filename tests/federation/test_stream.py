"""Updates that are taken as they come give the bits of updates that are held, whoever is refused or lost."""

from __future__ import annotations

import dataclasses
import gc
import weakref

import pytest
import torch

from fedfuse.core.weights import Weights
from fedfuse.engines.local import LocalEngine
from fedfuse.federation.stream import Stream, can_stream
from fedfuse.methods import METHODS
from fedfuse.models import Mlp
from fedfuse.parts.fuse import Distiller, EnsembleDistillation
from fedfuse.parts.local import ControlVariates, Objective, Plain
from fedfuse.parts.merge import Mean, Merged, Momentum
from fedfuse.parts.screen import DropWorst
from fedfuse.parts.upload import TopK
from fedfuse.testing.trial import difference
from tests.helpers import Recorder, TinyNorm, make_bank, make_federation, make_recipe, played

RECIPES = {
    "fedavg": make_recipe(),
    "uniform": make_recipe(merge=Mean(weighting="uniform", server_rate=0.7)),
    "fedavgm": make_recipe(merge=Momentum(beta=0.4, warm_up=1)),
    "scaffold": make_recipe(local=ControlVariates()),
    "scaffold with momentum": make_recipe(local=ControlVariates(), merge=Momentum(form="damped")),
    "top_k": make_recipe(upload=(TopK(share=0.3),)),
}


class Holding(LocalEngine):
    """An engine that cannot say what will come."""

    def __init__(self, inner):
        self.inner = inner

    def train(self, tasks, states):
        return self.inner.train(tasks, states)

    def examples_of(self, _tasks):
        return None


def held(federation):
    return dataclasses.replace(federation, engine=Holding(federation.engine))


def broken(update):
    return dataclasses.replace(update, weights=update.weights * float("nan"))


class Refused:
    """Answers of which some are broken, in some rounds, and in no order."""

    def __init__(self, *clients, rounds=(1, 2, 3), lost=()):
        self.clients, self.rounds, self.lost = clients, rounds, lost

    def __call__(self, pairs):
        now = pairs[0][0].round in self.rounds
        kept = [(u, s) for u, s in pairs if not (now and u.client in self.lost)]
        return [(broken(u) if now and u.client in self.clients else u, s) for u, s in kept[1:] + kept[:1]]


BENDS = {
    "last first": lambda pairs: pairs[::-1],
    "the first is refused": Refused(0),
    "the last is refused": Refused(3, rounds=(2,)),
    "two are refused": Refused(1, 2),
    "all are refused": Refused(0, 1, 2, 3, rounds=(2,)),
    "one is lost": Refused(lost=(2,)),
    "one is lost and one refused": Refused(0, lost=(3,)),
    "all are lost but one": Refused(lost=(0, 1, 3), rounds=(2, 3)),
    "twice": lambda pairs: [*pairs, *pairs],
}


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("bend", [None, *BENDS])
def test_the_bits_are_those_of_updates_that_are_held(recipe, bend):
    bank = make_bank(mlp=TinyNorm(), other=Mlp(hidden=(5,)))
    if recipe == "top_k" and bend not in (None, "last first"):
        pytest.skip("its weights travel packed")
    make = {"bank": bank, "recipe": RECIPES[recipe], "bend": BENDS.get(bend)}
    heard, held_heard = Recorder(), Recorder()
    streamed = make_federation(**make, listener=heard)
    assert can_stream(streamed.recipe, streamed.settings.batch_norm)
    kept = held(make_federation(**make, listener=held_heard))
    assert difference(played(streamed), played(kept)) is None
    for kind in ("client_finished", "update_refused", "round_finished"):
        ours, theirs = ([{**e, "time": 0, "seconds": 0} for e in told.of(kind)] for told in (heard, held_heard))
        assert ours == theirs


def test_after_a_refusal_the_next_round_holds_its_updates(monkeypatch):
    """Who was refused is likely to be refused again, and then everybody would have to train twice."""
    begun, begin = [], Stream.of

    def counted(recipe, expected, *others):
        begun.append(len(expected))
        return begin(recipe, expected, *others)

    monkeypatch.setattr(Stream, "of", counted)
    played(make_federation(bend=Refused(1, rounds=(1, 2))), 4)
    assert begun == [4, 3, 4], "round 1 twice, round 4; the others held"


def test_an_engine_that_says_something_else_when_it_is_asked_again_is_held():
    calls = iter(range(10))

    def bend(pairs):
        refused = next(calls)
        return [(broken(u) if u.client == refused else u, s) for u, s in pairs]

    after = played(make_federation(bend=bend), 1)
    assert after.server.history[0].refused == (0, 1, 2)
    assert after.server.weights["mlp"].is_finite()


class LongerAverage(Mean):
    """Overrides what is done with all updates, and knows nothing of accumulators."""

    def average(self, updates):
        return super().average(updates) * 2.0


class LongerMerge(Mean):
    def merge(self, view, prototype, updates):
        return Merged(super().merge(view, prototype, updates).weights * 2.0)


class Remembering(Plain):
    def after_round(self, _view, updates, _weights):
        return {"norm": torch.stack([u.weights.flat.norm() for u in updates]).sum()}


@pytest.mark.parametrize(
    "recipe",
    [
        make_recipe(merge=LongerAverage()),
        make_recipe(merge=LongerMerge()),
        make_recipe(local=Remembering()),
        make_recipe(screen=(DropWorst(),)),
        make_recipe(fuse=EnsembleDistillation(distiller=Distiller(steps=1))),
        *(METHODS[name].recipe for name in ("local-only", "fedmd", "fedma", "fedgen", "feddf")),
    ],
    ids=lambda recipe: type(recipe.merge).__name__,
)
def test_a_part_that_needs_all_updates_gets_them(recipe):
    assert not can_stream(recipe, "average")


def test_the_last_clients_statistics_need_its_update():
    assert not can_stream(make_recipe(), "last")


def test_what_a_subclass_does_with_all_updates_counts():
    plain, longer = (played(make_federation(recipe=make_recipe(merge=merge)), 1) for merge in (Mean(), LongerMerge()))
    assert longer.server.weights["mlp"].equals(plain.server.weights["mlp"] * 2.0)
    assert "norm" in played(make_federation(recipe=make_recipe(local=Remembering())), 1).server.memory["local"]


@pytest.mark.parametrize("recipe", ["fedavg", "scaffold"])
@pytest.mark.parametrize("clients", [3, 12])
def test_no_more_models_are_alive_with_more_clients(monkeypatch, recipe, clients):
    alive, most = set(), []
    make = Weights.__init__

    def counted(self, flat, layout):
        make(self, flat, layout)
        if layout.size:
            alive.add(id(self))
            weakref.finalize(self, alive.discard, id(self))
            most.append(len(alive))

    federation = make_federation(recipe=RECIPES[recipe], clients=clients)
    start = federation.start()
    gc.collect()
    gc.disable()
    try:
        monkeypatch.setattr(Weights, "__init__", counted)
        federation.advance(start)
    finally:
        gc.enable()
    assert max(most) <= 6


def test_objectives_that_remember_nothing_stream():
    class Own(Objective):
        def begin(self, client):
            raise NotImplementedError

    assert can_stream(make_recipe(local=Own()), "average")
