"""Packed uploads: what arrives, how many bytes it took, and that half precision rounds once."""

from __future__ import annotations

import pytest
import torch

from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.exchange.one_bit import OneBitUpload, pack, unpack
from fedfuse.federation import Recipe
from fedfuse.models import ResNet, create
from fedfuse.runtime.binary import norm_parameters, quantise
from tests.helpers import TinyNorm, make_bank, make_federation, make_view, make_weights, played

RESNET = create(ResNet(arch="resnet8"), (3, 32, 32), 10, Key(0))


def by_hand(row):
    """Q of one filter, one number at a time."""
    middle = sum(row) / len(row)
    radius = (sum((w - middle) ** 2 for w in row) / len(row)) ** 0.5
    return [middle + radius if w >= middle else middle - radius for w in row]


@pytest.mark.parametrize("shape", [(4, 3, 3, 3), (6, 5), (7,)])
def test_quantiser_against_a_loop(shape):
    tensor = torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rows = tensor.reshape(shape[0], -1) if len(shape) == 4 else tensor.reshape(1, -1)
    expected = torch.tensor([by_hand(row.tolist()) for row in rows]).reshape(shape)
    torch.testing.assert_close(quantise(tensor), expected, check_dtype=False)


def test_norm_layers_are_found_by_what_they_are():
    names = norm_parameters(RESNET)
    assert all(RESNET.get_parameter(name).ndim == 1 for name in names)
    assert len(names) == 2 * 9
    assert any("shortcut" in name for name in names)


def test_binary_weights_survive_packing_exactly():
    exact = norm_parameters(RESNET)
    with torch.no_grad():
        for name, p in RESNET.named_parameters():
            if name not in exact:
                p.copy_(quantise(p + 0.01 * torch.randn(p.shape)))
    weights = Weights.of(RESNET)
    packed = pack(weights, exact)
    assert unpack(packed, weights.layout, exact).equals(weights)


def test_other_weights_arrive_quantised():
    exact = norm_parameters(RESNET)
    model = create(ResNet(arch="resnet8"), (3, 32, 32), 10, Key(1))
    weights = Weights.of(model)
    arrived = unpack(pack(weights, exact), weights.layout, exact)
    for name in weights:
        expected = (
            weights[name] if name in exact or name not in dict(model.named_parameters()) else quantise(weights[name])
        )
        torch.testing.assert_close(arrived[name], expected)


def test_bytes_of_resnet8():
    """One bit per weight, two floats per filter or tensor, norms and statistics in full: a thirtieth of 315 kB."""
    exact = norm_parameters(RESNET)
    packed = pack(Weights.of(RESNET), exact)
    norms = sum(RESNET.get_parameter(name).numel() for name in exact)
    binary = 78_042 - norms
    filters = 16 + 2 * 16 + 3 * 32 + 3 * 64 + 2  # stem, three stages with their shortcuts, linear weight and bias
    assert sum(t.numel() * t.element_size() for t in packed.values()) == -(-binary // 8) + 8 * filters + 4 * (
        norms + 672
    )


@pytest.mark.parametrize("local", [{"kind": "plain"}, {"kind": "one_bit"}])
def test_the_ledger_counts_what_is_packed(local):
    recipe = Recipe.model_validate({"exchange": {"kind": "one_bit"}, "local": local})
    bank = make_bank(mlp=TinyNorm())
    (record,) = played(make_federation(bank=bank, recipe=recipe), 1).server.history
    weights = make_weights(bank, "mlp", 0)
    due = OneBitUpload().reply(make_view(bank, {"mlp": weights}), Task(1, 0, "mlp", weights))
    assert due == {"bits": ((4 * 6 + 6 + 6 * 3 + 3 + 7) // 8,), "values": (4, 2), "exact": (2 * 6 + 2 * 6,)}
    assert record.bytes_up == 4 * (due["bits"][0] + 4 * 8 + 4 * 24)
    assert record.bytes_down == 4 * 4 * bank.layout("mlp").size


def test_one_bit_clients_lose_nothing_on_the_way():
    """With binary weights already, the packed upload and the full one lead to the same server."""
    servers = []
    for exchange in ("weights", "one_bit"):
        recipe = Recipe.model_validate({"exchange": {"kind": exchange}, "local": {"kind": "one_bit"}})
        servers.append(played(make_federation(bank=make_bank(mlp=TinyNorm()), recipe=recipe), 3).server)
    assert servers[0].weights["mlp"].equals(servers[1].weights["mlp"])


@pytest.mark.parametrize(("kind", "dtype"), [("float16", torch.float16), ("bfloat16", torch.bfloat16)])
def test_half_precision_rounds_once_and_costs_half(kind, dtype):
    plain, half = (
        Recipe.model_validate({"exchange": e}) for e in ({"kind": "weights"}, {"kind": "half", "type": kind})
    )
    answers = []

    def bend(pairs):
        answers.extend(update for update, _ in pairs)
        return pairs

    full = played(make_federation(recipe=plain, bend=bend, clients=1), 1).server
    rounded = played(make_federation(recipe=half, clients=1), 1).server
    assert torch.equal(rounded.weights["mlp"].flat, answers[0].weights.flat.to(dtype).float())
    assert 2 * rounded.history[0].bytes_up == full.history[0].bytes_up


def test_an_overflow_of_half_precision_is_refused():
    recipe = Recipe.model_validate({"exchange": {"kind": "half"}})

    def bend(pairs):
        for update, state in pairs:
            update.extras["half_precision"].fill_(float("inf"))
            yield update, state

    (record,) = played(make_federation(recipe=recipe, bend=bend), 1).server.history
    assert record.refused == (0, 1, 2, 3)
