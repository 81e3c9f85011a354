"""Clients whose models share no weights are compared by what they say about public inputs."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.engines import LocalEngine
from fedfuse.federation.asking import IN_ONE_ROUND, MOST_ASKED, SO_FAR, Asked
from fedfuse.federation.attack import Attack
from fedfuse.federation.directions import Course, Courses, cosines_of, judged
from fedfuse.federation.hostile import HostileClients
from fedfuse.federation.sketches import SHORTEST, Sketch
from fedfuse.models import Mlp
from fedfuse.parts.fuse import Distiller, EnsembleDistillation
from fedfuse.runtime.predict import logits_on
from fedfuse.testing.attacks import Gaussian, SignFlip
from fedfuse.testing.trial import difference, through_a_checkpoint
from tests.helpers import (
    Recorder,
    make_bank,
    make_examples,
    make_federation,
    make_recipe,
    make_source,
    make_update,
    make_view,
    make_weights,
    played,
)

CLIENTS, LIAR = 8, 3
BANK = make_bank(mlp=Mlp(hidden=(6,)), wide=Mlp(hidden=(9,)), deep=Mlp(hidden=(8, 8)))
"""Three or two clients of each, too few to be compared by their weights."""
SOURCE = make_source(40)


def asked(moves):
    """Clients of different architectures that went these ways, and what was heard of them."""
    names = BANK.prototypes
    sent = {name: make_weights(BANK, name, 1) for name in names}
    hearing = Asked(make_view(bank=BANK, source=SOURCE), len(moves), Key(0))
    for client, move in enumerate(moves):
        name = names[client % len(names)]
        hearing.take(make_update(move(sent[name]), prototype=name, client=client), sent[name])
    return hearing, sent


def nearby(seed, scale=0.3):
    def move(sent):
        return Weights(
            sent.flat * (1 + scale * torch.rand(1, generator=torch.Generator().manual_seed(seed))), sent.layout
        )

    return move


def test_directions_are_those_of_what_tells_inputs_apart_whatever_the_architecture():
    hearing, sent = asked([nearby(seed) for seed in range(6)])
    by_hand = {}
    for client in range(6):
        name = BANK.prototypes[client % 3]
        said, before = (
            logits_on(SOURCE, BANK.lend(name, weights)) for weights in (nearby(client)(sent[name]), sent[name])
        )
        moved = said - before
        rest = moved - moved.mean(dim=1, keepdim=True) - moved.mean(dim=0, keepdim=True) + moved.mean()
        by_hand[client] = rest.reshape(-1)
    found = cosines_of({client: sketch.whole for client, sketch in hearing.sketches.items()})
    assert found == pytest.approx(cosines_of(by_hand), abs=1e-5)


def test_classes_that_a_client_says_more_often_whatever_it_is_asked_do_not_count():
    """Another bias of the last layer moves all answers alike: no client goes anywhere by it."""

    def biased(sent):
        name = sent.layout.parameters[-1][0]
        own = {name: sent[name] + torch.tensor([0.2, 0.0, -0.2])}
        return Weights(torch.cat([own.get(name, sent[name]).reshape(-1) for name in sent]), sent.layout)

    plain, _ = asked([nearby(seed) for seed in range(6)])
    hearing, _ = asked([lambda sent, seed=seed: biased(nearby(seed)(sent)) for seed in range(6)])
    for client, sketch in hearing.sketches.items():
        assert torch.allclose(sketch.whole, plain.sketches[client].whole, atol=1e-4)


def test_who_goes_very_far_is_asked_on_the_way():
    """Honest steps made fifty times as long say the same of where to, and where they end they would say anything."""

    def far(seed, factor):
        return lambda sent: sent + factor * (nearby(seed, scale=3.0)(sent) - sent)

    once, sent = asked([far(seed, 1.0) for seed in range(6)])
    again, _ = asked([far(0, 50.0), *(far(seed, 1.0) for seed in range(1, 6))])
    length = float((far(0, 1.0)(sent["mlp"]) - sent["mlp"]).parameters.norm() / sent["mlp"].parameters.norm())
    assert length > 1, "also the honest step is longer than the weights"
    assert torch.allclose(again.sketches[0].whole, once.sketches[0].whole, rtol=1e-4, atol=1e-4)


def test_some_inputs_are_enough():
    view = make_view(bank=BANK, source=make_source(MOST_ASKED + 700))
    assert len(Asked(view, 3, Key(0)).inputs) == MOST_ASKED


def test_answers_without_end_are_nobody_elses_affair():
    """Logits that are infinite or no numbers at all leave the others' cosines what they are without that client."""
    honest = [nearby(seed) for seed in range(6)]
    hearing, _ = asked([*honest, lambda sent: Weights(torch.full_like(sent.flat, 1e30), sent.layout)])
    verdict = hearing.judged(range(7), Courses())
    assert all(cosine == cosine for cosine in verdict.cosines.values()), "none is NaN"
    assert torch.stack([sketch.short for sketch in hearing.sketches.values()]).isfinite().all()


def federation(attack=None, listener=None, source=60, **settings):
    """Eight clients that learn the same with three architectures, and are distilled; one of them may attack."""
    recipe = make_recipe(fuse=EnsembleDistillation(distiller=Distiller(steps=20)))
    honest = make_federation(
        bank=BANK, recipe=recipe, clients=CLIENTS, source=source, listener=listener, **{"rounds": 4, **settings}
    )
    training = honest.engine.clients.training.model_copy(update={"epochs": 5})
    datasets = {client: make_examples(80, seed=client) for client in range(CLIENTS)}
    clients = dataclasses.replace(honest.engine.clients, datasets=datasets, training=training)
    attacks = () if attack is None else (attack,)
    return dataclasses.replace(honest, engine=LocalEngine(HostileClients.of(clients, attacks)))


class AnotherClass(Attack):
    """An honest model that calls every class by the next one's name."""

    kind: str = "another_class"

    def weights(self, honest, situation):  # noqa: ARG002
        last = honest.layout.parameters[-2:]
        rolled = {name: honest[name].roll(1, dims=0) for name, _ in last}
        return Weights(torch.cat([rolled.get(name, honest[name]).reshape(-1) for name in honest]), honest.layout)


ATTACKS = {
    "the other way": SignFlip(clients=(LIAR,)),
    "far the other way": SignFlip(clients=(LIAR,), factor=5.0),
    "other classes": AnotherClass(clients=(LIAR,)),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_who_goes_against_the_others_is_known_among_other_architectures(attack):
    heard = Recorder()
    after = played(federation(attack, heard), rounds=4)
    assert all(record.screened == (LIAR,) for record in after.server.history[1:]), "at the latest from the second on"
    assert {entry["client"] for entry in heard.of("client_screened")} == {LIAR}


def test_one_round_alone_has_to_show_more_than_several():
    """Three clear rounds with the same cosine of -0.25: by itself no round would say so, all of them together do."""
    random = torch.Generator().manual_seed(0)
    one_way = torch.nn.functional.normalize(torch.randn(SHORTEST, generator=random), dim=0)

    def a_round(seed):
        own = torch.Generator().manual_seed(seed)
        ways = [one_way + 0.02 * torch.randn(SHORTEST, generator=own) for _ in range(CLIENTS)]
        side = torch.randn(SHORTEST, generator=own)
        side = torch.nn.functional.normalize(side - (side @ one_way) * one_way, dim=0)
        ways[LIAR] = -0.25 * one_way + (1 - 0.25**2) ** 0.5 * side
        return {client: Sketch(way, way) for client, way in enumerate(ways)}

    sleeper = Courses(
        {c: Course(1.0, 0.9 if c == LIAR else 0.95, torch.zeros(SHORTEST, dtype=torch.float64)) for c in range(CLIENTS)}
    )
    assert not judged(a_round(1), sleeper, IN_ONE_ROUND, SO_FAR).against
    assert set(judged(a_round(1), sleeper).against) == {LIAR}, "of weights it is enough"
    known = Courses()
    for seed in (1, 2, 3):
        verdict = judged(a_round(seed), known, IN_ONE_ROUND, SO_FAR)
        assert set(verdict.against) == {LIAR}
        known = verdict.courses(verdict.against)


def test_honest_clients_have_the_bits_of_a_federation_that_takes_everything():
    bounded = played(federation(), rounds=4)
    assert [record.screened for record in bounded.server.history] == [()] * 4
    assert "answers" in bounded.server.memory
    kept = {
        at: own for at, own in bounded.server.memory.items() if not at.startswith(("answers", "moves/", "lengths/"))
    }
    forgotten = dataclasses.replace(bounded, server=dataclasses.replace(bounded.server, memory=kept))
    assert difference(forgotten, played(federation(claims="taken", moves="taken"), rounds=4)) is None


def test_it_goes_on_from_a_checkpoint_to_the_same_bits(tmp_path):
    attack = SignFlip(clients=(LIAR,), begins=2)
    whole = played(federation(attack), rounds=4)
    begun = through_a_checkpoint(played(federation(attack), rounds=2), tmp_path)
    assert difference(played(federation(attack), rounds=2, snapshot=begun), whole) is None


def test_nobody_is_asked_where_moves_are_taken():
    after = played(federation(ATTACKS["the other way"], moves="taken"), rounds=2)
    assert [record.screened for record in after.server.history] == [()] * 2
    assert not {at for at in after.server.memory if at.startswith(("answers", "moves"))}


def test_weights_of_which_no_model_knows_anything_do_not_teach():
    """With few others of its architecture, no fence of lengths would say so."""
    noise = Gaussian(clients=(LIAR,), deviation=3.0)
    assert all(LIAR in record.screened for record in played(federation(noise), rounds=3).server.history)


def test_whatever_becomes_of_the_liar_what_the_others_learn_is_theirs():
    """The federation ends where it would if the liar were refused in every round."""

    class Infinite(Attack):
        kind: str = "infinite"

        def weights(self, honest, situation):  # noqa: ARG002
            return float("inf") * honest

    without = played(federation(Infinite(clients=(LIAR,))), rounds=4).server
    beside = played(federation(ATTACKS["the other way"]), rounds=4).server
    assert all(beside.weights[name].equals(without.weights[name]) for name in BANK.prototypes)
