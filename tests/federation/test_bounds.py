"""One client that is nothing like the others is contained, and a round in which nobody is stays as it was."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch

from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Layout, Weights
from fedfuse.engines import LocalEngine
from fedfuse.federation.attack import Attack
from fedfuse.federation.hostile import HostileClients
from fedfuse.federation.moves import NOTHING_KNOWN, Judged, Moves
from fedfuse.federation.state import History
from fedfuse.models import Mlp
from fedfuse.parts.local import ControlVariates, Plain
from fedfuse.parts.merge import Matched
from fedfuse.parts.protocol import LayerByLayer
from fedfuse.testing.attacks import FalseClaims, Scaled, SignFlip
from fedfuse.testing.trial import difference, through_a_checkpoint
from tests.federation.test_stream import held
from tests.helpers import (
    Recorder,
    TinyNorm,
    make_bank,
    make_examples,
    make_federation,
    make_recipe,
    make_update,
    make_weights,
    played,
)

BANK = make_bank(mlp=TinyNorm())
SENT = make_weights(BANK, "mlp", 1)
COUNT = SENT.layout.parameter_count
CONTROL = torch.randn(COUNT, generator=torch.Generator().manual_seed(5)) / 10
LIAR = 3


def task(client, sent=SENT):
    return Task(1, client, "mlp", sent, {"local/control": CONTROL})


def moved(*moves, extras=None, objective=None):
    """Updates that went these ways, and what the bounds say of them."""
    tasks = {client: task(client) for client in range(len(moves))}
    judge = Moves(tasks, objective or Plain(), Key(0), "bounded")
    updates = [
        make_update(Weights(SENT.flat + move, SENT.layout), client=client, extras=(extras or {}).get(client, {}))
        for client, move in enumerate(moves)
    ]
    for update in updates:
        judge.take(update)
    return updates, judge.judged(set(tasks))


def directions(number, common=1.0, own=0.5, seed=0):
    """Clients that mostly go one way."""
    random = torch.Generator().manual_seed(seed)
    one_way = torch.randn(len(SENT.flat), generator=random)
    rows = [common * one_way + own * torch.randn(len(SENT.flat), generator=random) for _ in range(number)]
    return [torch.where(torch.arange(len(row)) < COUNT, row, row.abs()) for row in rows]


class TestMoves:
    def test_who_is_like_the_others_is_left_alone(self):
        updates, judged = moved(*directions(10))
        assert not judged
        assert judged.within_bounds(updates[0], SENT) is updates[0]

    @pytest.mark.parametrize("factor", [3.0, 20.0, 1e6])
    def test_a_move_that_is_too_long_ends_at_the_fence(self, factor):
        moves = directions(10)
        moves[LIAR] = factor * moves[LIAR]
        updates, judged = moved(*moves)
        assert set(judged.factors) == {LIAR}
        kept = judged.within_bounds(updates[LIAR], SENT).weights
        lengths = sorted(float(move[:COUNT].norm()) for at, move in enumerate(moves) if at != LIAR)
        assert float((kept.parameters - SENT.parameters).norm()) <= 2.01 * lengths[-1]
        cosine = torch.cosine_similarity(kept.parameters - SENT.parameters, moves[LIAR][:COUNT], dim=0)
        assert float(cosine) == pytest.approx(1, abs=1e-4), "it is shorter, and goes where it went"

    def test_statistics_have_a_fence_of_their_own(self):
        moves = directions(10)
        moves[LIAR] = torch.where(torch.arange(len(SENT.flat)) < COUNT, moves[LIAR], 1e9)
        updates, judged = moved(*moves)
        kept = judged.within_bounds(updates[LIAR], SENT).weights
        assert torch.equal(kept.parameters, updates[LIAR].weights.parameters)
        assert float(kept.buffers.max()) < 100

    def test_so_has_what_is_as_long_as_the_parameters(self):
        random = torch.Generator().manual_seed(1)
        extras = {client: {"local/control_change": torch.randn(COUNT, generator=random)} for client in range(10)}
        extras[LIAR] = {"local/control_change": -100 * extras[LIAR]["local/control_change"]}
        updates, judged = moved(*directions(10), extras=extras)
        kept = judged.within_bounds(updates[LIAR], SENT)
        assert kept.weights.equals(updates[LIAR].weights)
        assert float(kept.extras["local/control_change"].norm()) < 3 * COUNT**0.5

    @pytest.mark.parametrize("factor", [-0.5, -1.0, -2.0, -1000.0])
    def test_who_goes_against_all_others_counts_for_nothing(self, factor):
        moves = directions(10)
        moves[LIAR] = factor * moves[LIAR]
        _, judged = moved(*moves)
        assert set(judged.against) == {LIAR}

    @pytest.mark.parametrize("lie", [lambda c: -c, lambda c: c.roll(1), torch.zeros_like])
    def test_so_does_who_says_what_does_not_fit_its_move(self, lie):
        """A control variate is the move divided by its steps: of a false one nothing shows in the weights."""
        ways = directions(10)
        extras = {
            client: {"local/control_change": -way[:COUNT] / (10.0 + client) - CONTROL}
            for client, way in enumerate(ways)
        }
        assert not moved(*ways, extras=extras, objective=ControlVariates())[1].against
        extras[LIAR] = {"local/control_change": lie(extras[LIAR]["local/control_change"])}
        _, judged = moved(*ways, extras=extras, objective=ControlVariates())
        assert set(judged.against) == {LIAR}
        assert "what it says of its update" in judged.against[LIAR]

    def test_clients_that_go_everywhere_have_no_direction_to_go_against(self):
        _, judged = moved(*directions(10, common=0.0))
        assert not judged.against

    def test_of_few_nobody_is_against_the_others(self):
        moves = directions(4)
        _, judged = moved(*moves[:3], -moves[3])
        assert not judged

    def test_weights_that_nobody_was_sent_are_as_long_as_they_are(self):
        """Clients of FedMA keep the layers that they send later: such a layer is compared with the others' as it is."""
        judge = Moves({client: task(client) for client in range(10)}, Plain(), Key(0), "bounded")
        bank = make_bank(mlp=TinyNorm(width=9))
        layers = [make_weights(bank, "mlp", 3) * (1 + client / 100) for client in range(10)]
        layers[LIAR] = 50.0 * layers[LIAR]
        updates = [make_update(layer, client=client) for client, layer in enumerate(layers)]
        for update in updates:
            judge.take(update)
        judged = judge.judged(set(range(10)))
        assert set(judged.factors) == {LIAR}
        kept = judged.within_bounds(updates[LIAR], SENT).weights
        assert float(kept.parameters.norm()) < 2.01 * float(layers[0].parameters.norm())
        assert judged.known == NOTHING_KNOWN, "another layer comes in the next round"

    def test_of_what_was_sent_a_layer_is_compared_with_its_own_part(self):
        names = [name for name, _ in SENT.layout.parameters][:2]
        layout = Layout(tuple((name, tuple(SENT[name].shape)) for name in names), ())
        judge = Moves({client: task(client) for client in range(10)}, Plain(), Key(0), "bounded")
        part = torch.cat([SENT[name].reshape(-1) for name in names])
        for client, move in enumerate(directions(10)):
            sign = -1 if client == LIAR else 1
            judge.take(make_update(Weights(part + sign * move[: len(part)], layout), client=client))
        assert set(judge.judged(set(range(10))).against) == {LIAR}

    def test_units_in_another_order_are_not_compared(self):
        """Clients that were sent networks of their own may be as long as they like together, and in no direction."""
        moves = directions(10)
        tasks = {client: task(client, Weights(SENT.flat.clone(), SENT.layout)) for client in range(10)}
        judge = Moves(tasks, Plain(), Key(0), "bounded")
        for client, move in enumerate(moves):
            sign = -1 if client == LIAR else 1
            judge.take(make_update(Weights(SENT.flat + sign * move, SENT.layout), client=client))
        assert not judge.judged(set(tasks)).against

    def test_nothing_is_noted_where_moves_are_taken(self):
        judge = Moves({0: task(0)}, Plain(), Key(0), "taken")
        judge.take(make_update(SENT, client=0))
        assert not judge.lengths
        assert not Judged()


ATTACKS = {
    "long": Scaled(clients=(LIAR,)),
    "opposite": SignFlip(clients=(LIAR,), factor=3.0),
    "claim": FalseClaims(clients=(LIAR,)),
}
RECIPES = {"fedavg": make_recipe(), "scaffold": make_recipe(local=ControlVariates())}


def federation(attack=None, listener=None, recipe="fedavg", examples=make_examples, **more):
    """Eight clients that learn the same, of whom one may attack, in a way that is named or given."""
    honest = make_federation(bank=BANK, recipe=RECIPES[recipe], clients=8, listener=listener, **more)
    clients = dataclasses.replace(
        honest.engine.clients, datasets={client: examples(40 + client, seed=client) for client in range(8)}
    )
    attacks = () if attack is None else (ATTACKS.get(attack, attack),)
    return dataclasses.replace(honest, engine=LocalEngine(HostileClients.of(clients, attacks)))


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("attack", ATTACKS)
def test_streamed_and_held_have_the_same_bits(recipe, attack):
    heard = Recorder()
    streamed = played(federation(attack, heard, recipe))
    assert heard.of("move_bounded") or heard.of("claim_bounded") or heard.of("client_screened")
    assert difference(streamed, played(held(federation(attack, recipe=recipe)))) is None


def test_where_nobody_stands_out_the_bits_are_those_without_bounds():
    heard = Recorder()
    bounded = played(federation(listener=heard))
    assert {entry["event"] for entry in heard.entries}.isdisjoint({"move_bounded", "claim_bounded", "client_screened"})
    assert list(bounded.server.memory) == ["moves/mlp", "lengths/mlp"], "where everybody went, and how far"
    forgotten = dataclasses.replace(bounded, server=dataclasses.replace(bounded.server, memory={}))
    assert difference(forgotten, played(federation(claims="taken", moves="taken"))) is None


def test_taken_takes_everything():
    heard = Recorder()
    settings = {"claims": "taken", "moves": "taken"}
    far = played(federation("long", heard, **settings))
    near = played(federation("long"))
    assert not far.server.weights["mlp"].equals(near.server.weights["mlp"])
    assert {entry["event"] for entry in heard.entries}.isdisjoint({"move_bounded", "claim_bounded", "client_screened"})


def test_the_log_says_it_once_and_the_record_each_time(tmp_path):
    heard = Recorder()
    first = played(federation("claim", heard), rounds=2)
    resumed = through_a_checkpoint(first, tmp_path)
    after = played(federation("claim", heard), rounds=2, snapshot=resumed)
    [told] = heard.of("claim_bounded")
    assert (told["round"], told["client"]) == (1, LIAR)
    assert "claims 1,000,000,000 examples" in told["reason"]
    assert [record.claims_bounded for record in after.server.history] == [(LIAR,)] * 4


def test_records_are_read_back_and_say_nothing_where_there_is_nothing():
    bounded = played(federation("long")).server.history
    plain = played(federation()).server.history
    assert "moves_bounded" in bounded[0].to_json()
    assert not {"moves_bounded", "claims_bounded"} & plain[0].to_json().keys()
    for history in (bounded, plain):
        assert History(type(r).from_json(json.loads(json.dumps(r.to_json()))) for r in history) == history


class OppositeControl(Attack):
    """Honest weights, and what is said of the gradients with the other sign."""

    kind: str = "opposite_control"

    def extras(self, honest, situation):  # noqa: ARG002
        return {name: -tensor for name, tensor in honest.items()}


def test_a_flipped_control_variate_counts_in_no_round():
    attack = OppositeControl(clients=(LIAR,))
    streamed = played(federation(attack, recipe="scaffold"), rounds=3)
    assert all(LIAR in record.screened for record in streamed.server.history)
    assert difference(streamed, played(held(federation(attack, recipe="scaffold")), rounds=3)) is None


def test_who_goes_against_the_others_keeps_nothing_of_it():
    """As one that is refused: its state stays, else SCAFFOLD's server would not know of a control that it has."""
    heard = Recorder()
    after = played(federation("opposite", heard, "scaffold"), rounds=1)
    assert [entry["client"] for entry in heard.of("client_screened")] == [LIAR]
    assert "goes against the others" in heard.of("client_screened")[0]["reason"]
    assert LIAR not in after.clients or not after.clients[LIAR]
    assert after.server.history[0].screened == (LIAR,)


def test_who_does_not_count_in_a_round_of_layers_is_out_until_the_next_ones_begin():
    """Its neurons were not matched, so that nobody could tell it where they are."""
    recipe = make_recipe(protocol=LayerByLayer(), merge=Matched())
    honest = make_federation(bank=make_bank(mlp=Mlp(hidden=(5,))), recipe=recipe, clients=8)
    training = honest.engine.clients.training.model_copy(update={"epochs": 5})
    datasets = {client: make_examples(60, seed=client) for client in range(8)}
    clients = dataclasses.replace(honest.engine.clients, datasets=datasets, training=training)
    attacked = HostileClients.of(clients, (SignFlip(clients=(LIAR,), factor=2.0),))
    history = played(dataclasses.replace(honest, engine=LocalEngine(attacked)), rounds=4).server.history
    assert [LIAR in record.clients for record in history][:3] == [True, False, True]
    assert history[0].screened == (LIAR,)
