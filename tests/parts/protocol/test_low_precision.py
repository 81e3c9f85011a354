"""Packed uploads: what arrives, how many bytes it took, and that half precision rounds once."""

from __future__ import annotations

import pytest
import torch

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Layout, Weights
from fedfuse.experiment.run import Experiment
from fedfuse.federation import Recipe
from fedfuse.models import ResNet, create
from fedfuse.parts.binary import norm_parameters, quantise
from fedfuse.parts.protocol.one_bit import OneBitUpload, pack, unpack
from tests.helpers import (
    TinyNorm,
    events_of,
    make_bank,
    make_federation,
    make_view,
    make_weights,
    played,
    tiny_config,
    tiny_method,
)  # fmt: skip

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
    weights_spec = OneBitUpload().update_spec(make_view(bank, {"mlp": weights}), Task(1, 0, "mlp", weights))
    assert weights_spec == {"bits": ((4 * 6 + 6 + 6 * 3 + 3 + 7) // 8,), "values": (4, 2), "exact": (2 * 6 + 2 * 6,)}
    assert record.bytes_up == 4 * (weights_spec["bits"][0] + 4 * 8 + 4 * 24)
    assert record.bytes_down == 4 * 4 * bank.layout("mlp").size


def mixed_recipe(*prototypes):
    part = {"kind": "one_bit", "prototypes": prototypes}
    return Recipe.model_validate({"exchange": part, "local": part})


def test_prototypes_that_are_not_named_are_those_of_fedavg():
    """The named prototype as if all were binary, the other one as if none were, bit for bit."""
    architectures = {"bit": TinyNorm(), "full": TinyNorm(width=5)}
    mixed, binary, plain = (
        played(make_federation(bank=make_bank(**architectures), recipe=recipe), 2).server
        for recipe in (mixed_recipe("bit"), mixed_recipe("bit", "full"), Recipe())
    )
    assert mixed.weights["bit"].equals(binary.weights["bit"])
    assert mixed.weights["full"].equals(plain.weights["full"])
    assert not mixed.weights["bit"].equals(plain.weights["bit"])


def test_prototypes_that_are_not_named_cost_their_full_size():
    bank = make_bank(bit=TinyNorm(), full=TinyNorm(width=5))
    upload = OneBitUpload(prototypes=("bit",))
    view = make_view(bank, {name: make_weights(bank, name, 0) for name in ("bit", "full")})
    bit, full = (Task(1, 0, name, view.weights[name]) for name in ("bit", "full"))
    assert upload.update_spec(view, bit) == OneBitUpload().update_spec(view, bit)
    weights_spec = upload.update_spec(view, full)
    assert weights_spec == {"bits": (0,), "values": (0, 2), "exact": (bank.layout("full").size,)}
    (record,) = played(make_federation(bank=bank, recipe=mixed_recipe("bit")), 1).server.history
    bits = upload.update_spec(view, bit)
    packed = bits["bits"][0] + 4 * 2 * bits["values"][0] + 4 * bits["exact"][0]
    assert record.bytes_up == 2 * packed + 2 * 4 * bank.layout("full").size


@pytest.mark.parametrize("part", ["local", "exchange"])
def test_one_bit_prototypes_must_exist(part, out):
    config = tiny_config(tiny_method("fedavg", **{part: {"kind": "one_bit", "prototypes": ["mpl"]}}))
    with pytest.raises(ConfigError, match=r"one_bit prototypes: unknown model 'mpl' \(did you mean 'mlp'\?\)"):
        Experiment(config).run(out)


@pytest.mark.usefixtures("without_pictures")
def test_a_one_bit_resnet_among_others_in_full_precision(out):
    """FedDF fuses ResNet-20, ResNet-32, ShuffleNetV2 and a 1-bit ResNet-8 of very few channels."""
    part = {"kind": "one_bit", "prototypes": ["bit"]}
    config = tiny_config(
        tiny_method("feddf-one-bit", local=part, exchange=part),
        data={"name": "digits", "validation": 0.1, "public": 0.1},
        partition={"kind": "iid", "clients": 4},
        models={
            "resnet20": {"arch": "resnet20", "width": 2},
            "resnet32": {"arch": "resnet32", "width": 2},
            "shufflenet": {"arch": "shufflenetv2", "width": 4, "last": 8},
            "bit": {"arch": "resnet8", "width": 4},
        },
        training={"epochs": 1, "batch_size": 256},
        federation={"rounds": 1},
    )
    result = Experiment(config).run(out)
    assert result.summary["updates_refused"] == 0
    sizes = {entry["prototype"]: entry["bytes_up"] for entry in events_of(out, "client_finished")}
    for name in config.models:
        weights = Layout.of(result.model(name)).size
        assert sizes[name] < 4 * weights / 2 if name == "bit" else sizes[name] == 4 * weights


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
