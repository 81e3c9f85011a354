"""Work as parts declare it, against operations that are counted while they do it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from torch.utils.flop_counter import FlopCounterMode

from fedfuse.federation import Engine, EvaluationSettings, Recipe
from fedfuse.federation.clock.work import RoundWork
from fedfuse.federation.server_models import ServerModels
from fedfuse.methods import METHODS
from fedfuse.models import Mlp
from fedfuse.parts.screen import Screened
from tests.helpers import make_bank, make_federation, played, tiny_method

NOT_COUNTED = {
    "fedgen": "the generator, which is many times as large as this network",
    "fedgen-as-printed": "the same",
    "fedaux": "what a client's scores learn at its first visit",
    "fedma": "layers that are held still, which cost less",
}
"""Where the clock is not as exact as elsewhere, and why."""


class CountingEngine(Engine):
    """Clients here, one by one, with the operations of each."""

    def __init__(self, inner):
        self.inner, self.counted = inner, []

    def train(self, tasks, states):
        for task in tasks:
            with FlopCounterMode(display=False) as counter:
                answers = list(self.inner.train([task], states))
            self.counted.append((task, answers[0][0], counter.get_total_flops()))
            yield from answers

    def close(self):
        self.inner.close()


def made(name, **settings):
    """A method on a network whose first layer is a small part of it: that one needs no gradient of its inputs."""
    parts = {key: part for key, part in tiny_method(name).items() if key != "name"}
    parts["local"].pop("needs_projection_head", None)
    recipe, bank = Recipe.model_validate(parts), make_bank(net=Mlp(hidden=(40, 40)))
    clients = 1 if recipe.pooled else 3
    federation = make_federation(
        bank=bank, recipe=recipe, source=40, validation=10, clients=clients, labelled=True, **settings
    )
    federation = replace(federation, evaluation=EvaluationSettings(clients=False, ensemble=False))
    return federation, RoundWork(recipe, bank, federation.engine.clients.training)


@pytest.mark.parametrize("name", sorted(set(METHODS) - set(NOT_COUNTED)))
def test_a_client_pays_for_all_its_passes(name):
    federation, work = made(name)
    engine = CountingEngine(federation.engine)
    played(replace(federation, engine=engine), 2)
    scored = federation.source and work.recipe.scores.inputs(federation.source, federation.key)
    for task, update, counted in engine.counted:
        if name == "moon" and task.round == 1:
            continue  # a first visit, which costs less
        public = scored and work.recipe.protocol.public(scored, federation.key, task.round)
        assert counted == pytest.approx(work.of_client(task, update, public), rel=0.1)


@pytest.mark.parametrize("name", ["feddf", "feddf-as-coded", "fedbe", "feded-w0", "true-labels", "fedavg"])
def test_the_server_pays_for_its_fusion(name, monkeypatch):
    federation, work = made(name)
    found = []

    def fuse(self, view, merged, teachers, plain=ServerModels.fuse):
        with FlopCounterMode(display=False) as counter:
            fused = plain(self, view, merged, teachers)
        found.append((counter.get_total_flops(), teachers, fused.report))
        return fused

    monkeypatch.setattr(ServerModels, "fuse", fuse)
    federation = replace(federation, validation=None, evaluation=EvaluationSettings(every=9, clients=False))
    record = played(federation, 1).server.history[0]
    counted, teachers, report = found[0]
    whole = work.of_server(Screened(teachers, teachers), report, federation.source)
    merging = work.of_server(Screened(teachers, teachers), {}, None)
    assert record.refused == ()
    assert counted == pytest.approx(whole - merging, rel=0.1)
