"""The strategies' rounds are those of fedfuse's own engine: same updates, same bits, whatever the parts.

A federation plays with fedfuse's own clients, and what each was sent and answered is written down. Then a Flower app
plays it again: its clients answer the same, if and only if they are sent the same.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from torch import nn

from fedfuse.federation import Recipe
from fedfuse.flower import FedBE, FedDF, FedFuse
from fedfuse.methods import METHODS
from fedfuse.models import Mlp
from fedfuse.parts.fuse import Distiller, EnsembleDistillation, Swa
from fedfuse.parts.merge import Matched, Mean, Momentum
from fedfuse.parts.screen import DropWorst
from fedfuse.parts.teachers import DirichletTeachers
from fedfuse.runtime.optimizers import Sgd
from tests.flower.strategies.apps import grid_of
from tests.helpers import TinyNorm, make_bank, make_examples, make_federation, make_source, played

ROUNDS, CLIENTS = 3, 4
SOME, FEW = (
    Distiller(steps=6, batch_size=8),
    Distiller(steps=4, batch_size=8, keep="last", swa=Swa(collect_after=1, cycle=2)),
)
INPUTS, JUDGED = make_source(30).raw, make_examples(20, seed=1001)


def norm():
    return nn.Sequential(nn.Flatten(), nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3))


def plain():
    return nn.Sequential(nn.Flatten(), nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))


class Tape:
    """What clients are sent and answer, round by round, as flat arrays."""

    def __init__(self, engine):
        self.engine, self.sent, self.answered = engine, {}, {}

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def examples_of(self, tasks):  # noqa: ARG002
        return None

    def train(self, tasks, states):
        self.sent |= {(task.round, task.client): task for task in tasks}
        for update, state in self.engine.train(tasks, states):
            self.answered[update.round, update.client] = update
            yield update, state

    def app(self, number, make, says):
        """A Flower client that says what was said before, to whoever sends what was sent before."""
        app = ClientApp()

        @app.query()
        def query(message, context):  # noqa: ARG001
            return Message(RecordDict({"config": ConfigRecord({"model": says})}), reply_to=message)

        @app.train()
        def train(message, context):  # noqa: ARG001
            where = message.content["config"]["server-round"], number
            floats = flat(message.content["arrays"])
            np.testing.assert_array_equal(floats, self.sent[where].weights.flat.numpy())
            update = self.answered[where]
            state, values = make().state_dict(), iter(update.weights.values())
            arrays = {n: next(values) if t.is_floating_point() and "running" not in n else t for n, t in state.items()}
            arrays |= {n: next(values) for n in state if "running" in n}
            content = {
                "arrays": ArrayRecord({name: Array(np.asarray(value)) for name, value in arrays.items()}),
                "metrics": MetricRecord({"num-examples": update.examples}),
            }
            return Message(RecordDict(content), reply_to=message)

        return app


def flat(arrays):
    """Parameters, then BatchNorm statistics, without counters."""
    floats = {name: array.numpy() for name, array in arrays.items() if array.dtype == "float32"}
    ordered = sorted(floats, key=lambda name: "running" in name)
    return np.concatenate([floats[name].reshape(-1) for name in ordered])


def taped(recipe, prototypes, judged, **settings):
    """The first weights, what travelled, and the last weights of a federation."""
    bank = make_bank(**prototypes)
    federation = make_federation(
        bank, recipe, CLIENTS, validation=len(JUDGED) if judged else 0, source=len(INPUTS), **settings
    )
    tape = Tape(federation.engine)
    object.__setattr__(federation, "engine", tape)
    start = federation.start()
    return start.server.weights, tape, played(federation, ROUNDS, start).server.weights


def own_names(make, weights):
    """The state dict of one's own network with these weights."""
    model = make()
    places = [*model.parameters(), *(b for b in model.buffers() if b.is_floating_point())]
    with torch.no_grad():
        for place, value in zip(places, weights.values(), strict=True):
            place.copy_(value)
    return model.state_dict()


def fedbe(**changed):
    return METHODS["fedbe"].recipe.fuse.model_copy(update=changed)


NORM, PLAIN = {"model": TinyNorm()}, {"model": Mlp(hidden=(5,))}
LABELLED = {"validation": (JUDGED.inputs, JUDGED.labels)}
CASES = {
    "mean": (Recipe(), NORM, norm, lambda net: FedFuse(net, seed=5)),
    "uniform mean": (
        Recipe(merge=Mean(weighting="uniform", server_rate=0.5)), NORM, norm,
        lambda net: FedFuse(net, merge={"kind": "mean", "weighting": "uniform", "server_rate": 0.5}, seed=5),
    ),
    "momentum": (Recipe(merge=Momentum()), NORM, norm, lambda net: FedFuse(net, merge="momentum", seed=5)),
    "matched": (Recipe(merge=Matched()), PLAIN, plain, lambda net: FedFuse(net, merge=Matched(), seed=5)),
    "FedDF": (
        Recipe(fuse=EnsembleDistillation(distiller=SOME)), NORM, norm,
        lambda net: FedDF(net, INPUTS, SOME, seed=5),
    ),
    "matched FedDF": (
        Recipe(merge=Matched(), fuse=EnsembleDistillation(distiller=SOME)), PLAIN, plain,
        lambda net: FedDF(net, INPUTS, SOME, merge=Matched(), seed=5),
    ),
    "FedDF, best by validation": (
        Recipe(fuse=EnsembleDistillation(distiller=SOME), screen=(DropWorst(),)), NORM, norm,
        lambda net: FedDF(net, INPUTS, SOME, screen=["drop_worst"], seed=5, **LABELLED),
    ),
    "FedBE": (
        Recipe(fuse=fedbe(distiller=FEW)), NORM, norm,
        lambda net: FedBE(net, INPUTS, distiller=FEW, seed=5),
    ),
    "FedBE, Dirichlet, momentum": (
        Recipe(
            merge=Momentum(),
            fuse=fedbe(
                distiller=FEW.model_copy(update={"optimizer": Sgd(learning_rate=0.1)}),
                teachers=(*fedbe().teachers[:2], DirichletTeachers(number=3)),
            ),
        ), NORM, norm,
        lambda net: FedBE(
            net, INPUTS, DirichletTeachers(number=3),
            FEW.model_copy(update={"optimizer": Sgd(learning_rate=0.1)}), merge="momentum", seed=5,
        ),
    ),
}  # fmt: skip
for kind in ("examples", "confidence", "entropy", "variance", "validation"):
    CASES[f"FedDF by {kind}"] = (
        Recipe(fuse=EnsembleDistillation(distiller=SOME), scores={"kind": kind}),
        NORM,
        norm,
        lambda net, kind=kind: FedDF(net, INPUTS, SOME, scores=kind, seed=5, **LABELLED),
    )


@pytest.mark.parametrize("name", CASES)
def test_one_model(name):
    recipe, prototypes, make, strategy_of = CASES[name]
    strategy = strategy_of(make)
    begin, tape, end = taped(recipe, prototypes, strategy.rounds.validation)
    grid = grid_of(*(tape.app(client, make, "model") for client in range(CLIENTS)))
    initial = ArrayRecord(own_names(make, begin["model"]))
    strategy.fraction_evaluate = 0.0
    result = strategy.start(grid=grid, initial_arrays=initial, num_rounds=ROUNDS)
    np.testing.assert_array_equal(flat(result.arrays), end["model"].flat.numpy())
    assert not torch.equal(end["model"].flat[:10], begin["model"].flat[:10])


@pytest.mark.parametrize("absent", [(), ("norm",)], ids=["all heard", "one model without clients"])
def test_several_models(absent):
    names = ["mlp" if "norm" in absent else name for name in ("mlp", "norm", "norm", "mlp")]
    makers = {"mlp": plain, "norm": norm}
    recipe = Recipe(merge=Momentum(), fuse=EnsembleDistillation(distiller=SOME), scores={"kind": "entropy"})
    begin, tape, end = taped(recipe, {"mlp": Mlp(hidden=(5,)), "norm": TinyNorm()}, None, assigned=tuple(names))
    strategy = FedDF(makers, INPUTS, SOME, merge="momentum", scores="entropy", seed=5, fraction_evaluate=0.0)
    grid = grid_of(*(tape.app(client, makers[name], name) for client, name in enumerate(names)))
    states = {f"{name}/{n}": t for name, make in makers.items() for n, t in own_names(make, begin[name]).items()}
    result = strategy.start(grid=grid, initial_arrays=ArrayRecord(states), num_rounds=ROUNDS)
    for name, weights in end.items():
        np.testing.assert_array_equal(flat(strategy.arrays_of(result.arrays, name)), weights.flat.numpy())
        assert not weights.equals(begin[name])
