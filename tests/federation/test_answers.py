"""One client whose answers about the public inputs say nothing that the others say is not heard."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from fedfuse.core.weights import NOTHING
from fedfuse.engines import LocalEngine
from fedfuse.federation.answers import unlike_in_predictions
from fedfuse.federation.hostile import HostileClients
from fedfuse.parts.fuse import Distiller, PredictionDistillation
from fedfuse.parts.protocol import Predictions
from fedfuse.testing.attacks import FalsePredictions
from fedfuse.testing.trial import difference
from tests.helpers import Recorder, make_examples, make_federation, make_recipe, make_update, played

CLIENTS, LIAR, INPUTS, CLASSES = 8, 3, 200, 5
TRUTH = torch.randint(0, CLASSES, (INPUTS,), generator=torch.Generator().manual_seed(0))


def knowing(share, seed):
    """Sure answers, of which such a share is right."""
    random = torch.Generator().manual_seed(seed)
    guesses = torch.randint(0, CLASSES, (INPUTS,), generator=random)
    return torch.eye(CLASSES)[torch.where(torch.rand(INPUTS, generator=random) < share, TRUTH, guesses)]


def sent(**other):
    """Updates with answers, of which some are others."""
    tables = [knowing(0.7, client) for client in range(CLIENTS)]
    for name, table in other.items():
        tables[int(name.removeprefix("c"))] = table
    return [
        make_update(NOTHING, client=client, extras={"protocol/predictions": table})
        for client, table in enumerate(tables)
    ]


LIES = {
    "the next class": torch.eye(CLASSES)[(TRUTH + 1) % CLASSES],
    "always the same": torch.eye(CLASSES)[torch.zeros(INPUTS, dtype=torch.long)],
    "anything": knowing(0.0, 99),
    "nothing": torch.zeros(INPUTS, CLASSES),
}


def test_who_knows_something_is_heard():
    assert not unlike_in_predictions(sent())
    assert not unlike_in_predictions(sent(c3=knowing(0.3, 9)))


@pytest.mark.parametrize("lie", LIES)
def test_who_says_nothing_that_the_others_say_is_not(lie):
    assert list(unlike_in_predictions(sent(c3=LIES[lie]))) == [LIAR]


def test_where_honest_clients_know_one_class_each_nobody_is_judged():
    alone = {f"c{client}": torch.eye(CLASSES)[torch.full((INPUTS,), client % CLASSES)] for client in range(CLIENTS)}
    assert not unlike_in_predictions(sent(**alone))


def test_of_few_nobody_is_judged():
    assert not unlike_in_predictions(sent(c3=LIES["anything"])[:4])


def test_updates_without_answers_are_not_judged():
    assert not unlike_in_predictions([make_update(NOTHING, client=client) for client in range(CLIENTS)])


def federation(liar=True, listener=None, **settings):
    """Eight clients that learn the same and send what they think of 60 public inputs."""
    recipe = make_recipe(protocol=Predictions(), fuse=PredictionDistillation(distiller=Distiller(steps=20)))
    honest = make_federation(recipe=recipe, clients=CLIENTS, source=60, listener=listener, **settings)
    datasets = {client: make_examples(80, seed=client) for client in range(CLIENTS)}
    training = honest.engine.clients.training.model_copy(update={"epochs": 10})
    clients = dataclasses.replace(honest.engine.clients, datasets=datasets, training=training)
    attacks = (FalsePredictions(clients=(LIAR,), say="shifted"),) if liar else ()
    return dataclasses.replace(honest, engine=LocalEngine(HostileClients.of(clients, attacks)))


def test_a_liar_is_screened_and_the_log_says_why():
    heard = Recorder()
    after = played(federation(listener=heard), rounds=2)
    assert [record.screened for record in after.server.history] == [(LIAR,)] * 2
    assert "as seldom as a guess" in heard.of("client_screened")[0]["reason"]


def test_where_claims_are_taken_or_nobody_lies_nothing_is_changed():
    taken = played(federation(claims="taken"), rounds=2)
    assert [record.screened for record in taken.server.history] == [()] * 2
    honest = played(federation(liar=False), rounds=2)
    assert difference(honest, played(federation(liar=False, claims="taken"), rounds=2)) is None
