"""FedMA layer by layer: what travels, what is held still, and that matching loses nothing."""

from __future__ import annotations

import itertools

import pytest
import torch

from fedfuse.core.messages import Task, within
from fedfuse.core.weights import Weights
from fedfuse.methods import METHODS
from fedfuse.models import Mlp
from fedfuse.models.chain import chain
from fedfuse.parts.merge import Matched
from fedfuse.parts.protocol import LayerByLayer
from tests.helpers import CLASSES, FEATURES, make_bank, make_federation, make_update, make_view, make_weights, played

RECIPE = METHODS["fedma"].recipe
DEEP = {"mlp": Mlp(hidden=(5, 4))}


def permuted(weights, links, seed):
    """The same function with the hidden neurons of every layer in another order."""
    random, tensors = torch.Generator().manual_seed(seed), {name: t.clone() for name, t in weights.items()}
    for link, after in itertools.pairwise(links):
        order = torch.randperm(len(tensors[link.weight]), generator=random)
        tensors[link.weight], tensors[link.bias] = tensors[link.weight][order], tensors[link.bias][order]
        tensors[after.weight] = tensors[after.weight][:, order]
    return Weights(torch.cat([tensors[name].reshape(-1) for name in weights]), weights.layout)


def test_layer_by_layer_without_training_recovers_a_permuted_network_exactly():
    """The whole protocol by hand, client and server in turns, with clients that only differ in the order of neurons."""
    bank, protocol, merge = make_bank(**DEEP), LayerByLayer(), Matched(sigma0=1e6, gamma=1e-3, sigma=0.1)
    links = chain(bank.network("mlp"))
    original = make_weights(bank, "mlp", 7)
    begun = {client: permuted(original, links, client) for client in range(4)}
    memory, states = {}, {}
    for stage, link in enumerate(links):
        view = make_view(bank, {"mlp": original}, round=stage + 1, memory=memory)
        extras = merge.broadcast(view, "mlp", range(4))
        updates = []
        for client in range(4):
            task = Task(stage + 1, client, "mlp", begun[client], within("merge", extras.get(client, {})))
            own = protocol.begin(task, states.get(client, {}), bank)
            inputs = torch.randn(9, FEATURES, generator=torch.Generator().manual_seed(0))
            with torch.no_grad():  # whatever was matched and reordered, the client computes what it did before
                same = [bank.lend("mlp", w)(inputs) for w in (own, original)]
            torch.testing.assert_close(*same, rtol=1e-4, atol=1e-5)
            layer = {name: own[name] for name in (link.weight, link.bias)}
            states[client] = dict(own.items())
            updates.append(make_update(_only(layer), client=client, number=stage + 1))
        merged = merge.merge(view, "mlp", updates)
        memory = merged.memory
        assert (merged.weights is original) is (stage < len(links) - 1)
    assert merged.weights.layout == original.layout
    with torch.no_grad():
        ends = [bank.lend("mlp", w)(inputs) for w in (merged.weights, original)]
    torch.testing.assert_close(*ends, rtol=1e-4, atol=1e-5)


def _only(tensors):
    layout = type(make_weights(make_bank(), "mlp", 0).layout)(
        tuple((n, tuple(t.shape)) for n, t in tensors.items()), ()
    )
    return Weights(torch.cat([t.reshape(-1) for t in tensors.values()]), layout)


def test_bytes_of_every_round():
    """Down: the model, then the matched layer and 4 bytes per own neuron; up: one layer, at last with label counts."""
    federation = make_federation(bank=make_bank(**DEEP), recipe=RECIPE)
    sent = []
    train = federation.engine.train
    federation.engine.train = lambda tasks, states: (sent.append(tasks), train(tasks, states))[1]
    history = played(federation, 3).server.history
    widths = [len(sent[stage][0].extras[f"merge/matched/layers.{i}.weight"]) for stage, i in ((1, 1), (2, 3))]
    layers = [5 * (FEATURES + 1), 4 * (widths[0] + 1), CLASSES * (widths[1] + 1)]
    downs = [federation.bank.layout("mlp").size, widths[0] * (FEATURES + 1) + 5, widths[1] * (widths[0] + 1) + 4]
    assert [r.bytes_up for r in history] == [16 * layers[0], 16 * layers[1], 16 * (layers[2] + CLASSES)]
    assert [r.bytes_down for r in history] == [16 * number for number in downs]
    assert all(r.refused == () for r in history)


def test_the_model_changes_at_the_end_of_a_cycle_and_matched_layers_are_held():
    federation = make_federation(bank=make_bank(**DEEP), recipe=RECIPE)
    snapshots = [federation.start()]
    for _ in range(6):
        snapshots.append(federation.advance(snapshots[-1]))
    weights = [snapshot.server.weights["mlp"] for snapshot in snapshots]
    changed = [not before.equals(after) for before, after in itertools.pairwise(weights)]
    assert changed == [False, False, True] * 2
    first = snapshots[1].server.memory["merge/mlp"]["joined/layers.1.weight"]
    for state in snapshots[2].clients.values():
        assert torch.equal(state["protocol/layers.1.weight"], first)
    assert torch.equal(weights[3]["layers.1.weight"], first)
    assert snapshots[3].clients == {}


def test_the_same_clients_stay_for_a_cycle():
    federation = make_federation(bank=make_bank(**DEEP), recipe=RECIPE, clients=12, clients_per_round=3)
    history = played(federation, 9).server.history
    cohorts = [record.clients for record in history]
    assert cohorts[0] == cohorts[1] == cohorts[2]
    assert cohorts[3] == cohorts[4] == cohorts[5]
    assert len(set(cohorts)) > 1


def test_who_misses_a_round_is_out_until_the_next_cycle():
    def bend(pairs):
        return [(u, s) for u, s in pairs if (u.round, u.client) != (2, 1)]

    history = played(make_federation(bank=make_bank(**DEEP), recipe=RECIPE, bend=bend), 4).server.history
    assert [record.clients for record in history] == [(0, 1, 2, 3), (0, 1, 2, 3), (0, 2, 3), (0, 1, 2, 3)]
    assert [record.late for record in history] == [(), (1,), (), ()]


def test_a_lost_round_ends_the_cycle():
    def bend(pairs):
        return [(u, s) for u, s in pairs if u.round != 2]

    history = played(make_federation(bank=make_bank(**DEEP), recipe=RECIPE, bend=bend), 4).server.history
    assert [len(record.clients) for record in history] == [4, 4, 0, 4]


def test_networks_of_different_depth_wait_for_each_other():
    bank = make_bank(flat=Mlp(hidden=(5,)), deep=Mlp(hidden=(5, 4)))
    federation = make_federation(bank=bank, recipe=RECIPE)
    history = played(federation, 3).server.history
    assert [record.clients for record in history] == [(0, 1, 2, 3), (0, 1, 2, 3), (2, 3)]


def widths_of(snapshot):
    return [len(snapshot.server.weights["mlp"][f"layers.{i}.weight"]) for i in (1, 3)]


def test_layers_after_six_cycles_are_hardly_wider_than_after_one():
    federation = make_federation(bank=make_bank(mlp=Mlp(hidden=(40, 30))), recipe=RECIPE)
    after_one = played(federation, 3)
    after_six = played(federation, 15, after_one)
    assert widths_of(after_one) > [40, 30]
    assert all(late <= 1.25 * early for early, late in zip(widths_of(after_one), widths_of(after_six), strict=True))


def test_a_second_cycle_begins_with_networks_of_the_models_own_size():
    """Rebuilt by hand: of every layer the rows, and of the next one the inputs, that the client's neurons became."""
    federation = make_federation(bank=make_bank(**DEEP), recipe=RECIPE, clients=6, clients_per_round=4)
    sent = []
    train = federation.engine.train
    federation.engine.train = lambda tasks, states: (sent.append(tasks), train(tasks, states))[1]
    whole = played(federation, 3)
    played(federation, 1, whole)
    network, links = whole.server.weights["mlp"], chain(federation.bank.network("mlp"))
    matched = {
        client: [task.extras["merge/assignment"] for round in (1, 2) for task in sent[round] if task.client == client]
        for client in {task.client for task in sent[0]}
    }
    seen = set()
    for task in sent[3]:
        assert task.weights.layout == federation.bank.layout("mlp")
        seen.add(task.client in matched)
        if task.client not in matched:
            continue
        first, second = (place.long() for place in matched[task.client])
        expected = [network[links[0].weight][first], network[links[1].weight][second][:, first]]
        expected.append(network[links[2].weight][:, second])
        for link, weight in zip(links, expected, strict=True):
            assert torch.equal(task.weights[link.weight], weight)
        assert torch.equal(task.weights[links[0].bias], network[links[0].bias][first])
    assert seen == {True, False}, "clients with and without a place in the last cycle"


def test_a_broken_cycle_leaves_nothing_behind_that_the_next_one_stumbles_over():
    """The second cycle is lost after its first layer, and others take part in the third."""

    def bend(pairs):
        return [(u, s) for u, s in pairs if u.round != 5]

    federation = make_federation(bank=make_bank(**DEEP), recipe=RECIPE, bend=bend, clients=12, clients_per_round=3)
    after_one = played(federation, 3)
    after_two = played(federation, 3, after_one)
    assert after_two.server.weights["mlp"].equals(after_one.server.weights["mlp"])
    history = played(federation, 3, after_two).server.history
    assert [len(record.clients) for record in history] == [3, 3, 3, 3, 3, 0, 3, 3, 3]
    assert all(record.refused == () for record in history[6:])


def test_gradients_are_given_back():
    federation = make_federation(bank=make_bank(**DEEP), recipe=RECIPE)
    played(federation, 2)
    for residents in federation.bank._residents.values():
        assert all(parameter.requires_grad for parameter in residents.parameters())


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"merge": {"kind": "mean"}}, "only merge matched can join"),
        ({"local": {"kind": "control_variates"}}, "needs weights that travel"),
        ({"fuse": {"kind": "ensemble_distillation"}}, "needs clients' weights"),
        (
            {
                "protocol": {"kind": "weights"},
                "fuse": {"kind": "ensemble_distillation", "teachers": [{"kind": "gaussian", "form": "as_coded"}]},
            },
            "use form as_printed",
        ),
    ],
)
def test_refusals(parts, reason):
    whole = {**RECIPE.model_dump(mode="json"), **parts}
    with pytest.raises(ValueError, match=reason):
        type(RECIPE).model_validate(whole)
