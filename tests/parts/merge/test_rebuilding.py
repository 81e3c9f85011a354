"""A client's own network from the matched one, against loops; widths that stay; clients that were not matched."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedfuse.core.randomness import Key
from fedfuse.models import CnnDeep, Mlp
from fedfuse.models.chain import carry_over, chain, take_back
from fedfuse.parts.merge import Matched
from fedfuse.parts.merge.rebuilding import OTHERS, OWN, most_common, rebuilt
from fedfuse.runtime.bank import ModelBank
from tests.helpers import CPU, make_bank, make_federation, make_recipe, make_update, make_view, make_weights, played

NETWORKS = {"mlp": (Mlp(hidden=(6, 5)), (4,)), "cnn_deep": (CnnDeep(channels=(3, 4)), (1, 8, 8))}


@pytest.mark.parametrize("block", [1, 4])
def test_taking_back_undoes_carrying_over(block):
    weight = torch.randn(3, 5 * block, 2, 2, generator=Key(1).torch())
    where = torch.tensor([6, 0, 3, 2, 7])
    assert torch.equal(take_back(carry_over(weight, where, width=8, block=block), where, block), weight)


def test_the_most_common_neurons():
    places = [torch.tensor([4, 1, 0]), torch.tensor([2, 1, 4]), torch.tensor([3, 4, 0])]
    assert most_common(places).tolist() == [0, 1, 4]  # 4 has three clients, 0 and 1 two, 2 and 3 one
    assert most_common([torch.tensor([2, 0]), torch.tensor([3, 1])]).tolist() == [0, 1]  # all alike: the first ones


@pytest.mark.parametrize("name", list(NETWORKS))
def test_every_number_of_a_rebuilt_network_is_where_loops_find_it(name):
    architecture, shape = NETWORKS[name]
    bank = ModelBank({"net": architecture}, shape, 3, CPU)
    links = chain(bank.network("net"))
    updates = [make_update(make_weights(bank, "net", seed), seed, prototype="net") for seed in range(3)]
    merged = Matched().merge(make_view(bank), "net", updates)
    assert merged.weights.layout != bank.layout("net"), "nothing grew, so there is nothing to see"
    for client in (0, 1, 2, 77):
        who = client if client < 3 else OTHERS
        own = rebuilt(merged.weights, links, merged.memory, client)
        assert own.layout == bank.layout("net")
        before = None
        for link in links:
            weight, bias = merged.weights[link.weight].numpy(), merged.weights[link.bias].numpy()
            is_last = link is links[-1]
            rows = range(3) if is_last else merged.memory[f"{OWN}/{link.name}/{who}"].tolist()
            for i, row in enumerate(rows):
                assert own[link.bias][i] == bias[row]
                if before is None:
                    assert np.array_equal(own[link.weight][i].numpy(), weight[row])
                    continue
                for j, neuron in enumerate(before):
                    for pixel in range(link.block):
                        ours = own[link.weight][i, j * link.block + pixel].numpy()
                        assert np.array_equal(ours, weight[row, neuron * link.block + pixel])
            before = rows


def test_with_strangers_side_by_side_everybody_gets_its_own_neurons_back():
    """Nothing matches and means are plain, so a client's hidden layer is its own, and the output its share of it."""
    bank, sizes = make_bank(mlp=Mlp(hidden=(5,))), [1, 3]
    clients = [make_weights(bank, "mlp", seed) * 1000 for seed in (1, 2)]
    updates = [make_update(w, c, n) for c, (w, n) in enumerate(zip(clients, sizes, strict=True))]
    merged = Matched(sigma0=1e5).merge(make_view(bank), "mlp", updates)
    for client, share in enumerate((0.25, 0.75)):
        own = rebuilt(merged.weights, chain(bank.network("mlp")), merged.memory, client)
        torch.testing.assert_close(own["layers.1.weight"], clients[client]["layers.1.weight"])
        torch.testing.assert_close(own["classifier.weight"], share * clients[client]["classifier.weight"])


def widths_after(federation, rounds):
    """Of all hidden layers, after every round."""
    snapshot, widths = federation.start(), []
    links = chain(federation.bank.network("mlp"))
    for _ in range(rounds):
        snapshot = federation.advance(snapshot)
        widths.append([len(snapshot.server.weights["mlp"][link.weight]) for link in links[:-1]])
    return widths


def test_layers_do_not_grow_from_round_to_round():
    bank = make_bank(mlp=Mlp(hidden=(30, 20)))
    widths = widths_after(make_federation(bank=bank, recipe=make_recipe(merge=Matched())), 6)
    assert widths[0] > [30, 20]
    assert all(late <= 1.25 * early for early, late in zip(widths[0], widths[-1], strict=True))


def test_what_clients_are_sent_and_send_keeps_its_size():
    bank = make_bank(mlp=Mlp(hidden=(30,)))
    federation = make_federation(bank=bank, recipe=make_recipe(merge=Matched()), clients=6, clients_per_round=3)
    history = played(federation, 5).server.history
    assert {record.bytes_down for record in history} == {3 * 4 * bank.layout("mlp").size}
    assert {record.bytes_up for record in history} == {3 * 4 * bank.layout("mlp").size}
    assert len({record.clients for record in history}) > 1, "clients that were not matched before took part"
    assert all(record.refused == () for record in history)
