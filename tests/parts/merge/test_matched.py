"""Matched averaging undoes permutations of hidden units, lets layers grow, and goes through whole federations."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.experiment.run import Experiment
from fedfuse.federation.recipe import Recipe
from fedfuse.models import CnnDeep, ConvNet, Mlp, ResNet
from fedfuse.parts.base import CheckContext
from fedfuse.parts.fuse import Distiller, EnsembleDistillation
from fedfuse.parts.merge import Matched, Mean
from fedfuse.parts.merge.matched import Layer, carry_over, output_layer
from fedfuse.parts.protocol import FullWeights, LayerByLayer
from fedfuse.parts.teachers import AverageTeacher, ClientTeachers
from fedfuse.parts.upload import HalfPrecision
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.optimizers import Sgd
from fedfuse.testing.trial import through_a_checkpoint
from tests.helpers import (
    CPU,
    TinyNorm,
    make_bank,
    make_federation,
    make_recipe,
    make_update,
    make_view,
    make_weights,
    played,
    tiny_config,
    tiny_method,
)

FLAT = Matched(sigma=0.1, sigma0=1e4, gamma=1e-6)
"""A flat prior and hardly a reason for new neurons: the mean of the neurons that match."""

# (architecture, input shape, hidden layer -> the layer that reads it, and how many of its inputs one neuron reaches)
NETWORKS = {
    "mlp": (Mlp(hidden=(9, 7)), (4,), [("layers.1", "layers.3", 1), ("layers.3", "classifier", 1)]),
    "cnn_deep": (CnnDeep(), (1, 8, 8), [("layers.0", "layers.3", 1), ("layers.3", "classifier", 4)]),
    "convnet": (
        ConvNet(),
        (3, 22, 22),
        [
            ("layers.0", "layers.3", 1),
            ("layers.3", "layers.6", 1),
            ("layers.6", "layers.9", 4),
            ("layers.9", "classifier", 1),
        ],
    ),
    "head": (
        Mlp(hidden=(9,), projection_head=6),
        (4,),
        [("body.layers.1", "head.0", 1), ("head.0", "head.2", 1), ("head.2", "classifier", 1)],
    ),
}


@pytest.fixture(params=list(NETWORKS))
def network(request):
    architecture, shape, layers = NETWORKS[request.param]
    return ModelBank({"mlp": architecture}, shape, 3, CPU), layers


def permuted(bank, weights, layers, random):
    """The same function with the hidden units of every layer in another order."""
    model = copy.deepcopy(bank.lend("mlp", weights))
    with torch.no_grad():
        for here, following, pixels in layers:
            layer, reader = model.get_submodule(here), model.get_submodule(following)
            order = random.permutation(len(layer.weight))
            layer.weight.copy_(layer.weight[order].clone())
            layer.bias.copy_(layer.bias[order].clone())
            inputs = (order[:, None] * pixels + np.arange(pixels)).reshape(-1)
            reader.weight.copy_(reader.weight[:, inputs].clone())
    return Weights.of(model, weights.layout)


def outputs(bank, weights):
    x = torch.randn(8, *bank.input_shape, generator=Key(3).torch())
    with torch.no_grad():
        return bank.lend("mlp", weights).eval()(x)


def same_function(bank, one, other):
    return torch.allclose(outputs(bank, one), outputs(bank, other), atol=1e-4)


def updates_of(weights, sizes=None):
    sizes = sizes or [10] * len(weights)
    return [make_update(w, client, n) for client, (w, n) in enumerate(zip(weights, sizes, strict=True))]


def merged(bank, merge, updates):
    return merge.merge(make_view(bank), "mlp", updates).weights


class TestPermutations:
    def test_copies_with_permuted_units_give_the_network_back(self, network):
        bank, layers = network
        base, random = bank.initial("mlp", Key(1)), np.random.default_rng(0)
        clients = [permuted(bank, base, layers, random) for _ in range(3)]
        assert all(same_function(bank, client, base) and not client.equals(base) for client in clients)
        result = merged(bank, FLAT, updates_of(clients))
        assert result.layout == base.layout
        assert same_function(bank, result, base)
        assert not same_function(bank, merged(bank, Mean(), updates_of(clients)), base)

    def test_noisy_copies_give_the_average_of_the_clients_before_their_units_were_permuted(self, network):
        bank, layers = network
        base, random = bank.initial("mlp", Key(1)), np.random.default_rng(0)
        noise = [0.02 * torch.randn(base.flat.shape, generator=Key(k).torch()) for k in range(3)]
        noisy = [Weights(base.flat + one, base.layout) for one in noise]
        clients = [permuted(bank, weights, layers, random) for weights in noisy]
        result, average = (merged(bank, m, updates_of(w)) for m, w in ((FLAT, clients), (Mean(), noisy)))
        assert result.layout == base.layout
        assert same_function(bank, result, average)
        assert not same_function(bank, result, base)

    def test_one_client_gets_its_own_network_back(self, network):
        bank, _ = network
        weights = bank.initial("mlp", Key(1))
        result = merged(bank, FLAT, updates_of([weights]))
        assert torch.allclose(result.flat, weights.flat, atol=1e-6)

    def test_as_in_the_original_hidden_neurons_shrink_and_outputs_do_not(self):
        bank = make_bank(mlp=Mlp(hidden=(5,)))
        weights = make_weights(bank, "mlp", 1)
        result = merged(bank, Matched(), updates_of([weights]))
        assert torch.allclose(result["layers.1.weight"], weights["layers.1.weight"] / 2)
        assert torch.allclose(result["layers.1.bias"], (weights["layers.1.bias"] + 0.1) / 2)
        assert torch.equal(result["classifier.weight"], weights["classifier.weight"])


class TestWidths:
    def test_strangers_side_by_side(self):
        """Nothing matches, so the hidden layer holds all neurons, and the output reads every client's by its share."""
        bank, sizes = make_bank(mlp=Mlp(hidden=(5,))), [1, 3]
        clients = [Weights(1000 * w.flat, w.layout) for w in (make_weights(bank, "mlp", seed) for seed in (1, 2))]
        result = merged(bank, Matched(sigma0=1e5), updates_of(clients, sizes))
        assert result["layers.1.weight"].shape == (10, 4)
        shares = zip((0.25, 0.75), clients, strict=True)
        expected = torch.cat([share * client["classifier.weight"] for share, client in shares], dim=1)
        order = [
            int(torch.cdist(row[None], torch.cat([w["layers.1.weight"] for w in clients])).argmin())
            for row in result["layers.1.weight"]
        ]
        assert sorted(order) == list(range(10))
        assert torch.allclose(result["classifier.weight"], expected[:, order], rtol=1e-5)

    def test_later_layers_have_zeros_where_a_client_lacks_a_neuron(self):
        weight = torch.arange(12.0).reshape(2, 6)
        carried = carry_over(weight, torch.tensor([2, 0, 3]), width=5, block=2)
        expected = [[2, 3, 0, 0, 0, 1, 4, 5, 0, 0], [8, 9, 0, 0, 6, 7, 10, 11, 0, 0]]
        assert carried.tolist() == expected

    def test_channels_are_carried_with_their_kernels(self):
        weight = torch.randn(4, 3, 5, 5)
        carried = carry_over(weight, torch.tensor([1, 3, 0]), width=4, block=1)
        assert carried.shape == (4, 4, 5, 5)
        assert torch.equal(carried[:, [1, 3, 0]], weight)
        assert not carried[:, 2].any()

    def test_clients_that_come_with_other_widths_than_the_architecture(self):
        """As in a second round."""
        wide, narrow = make_bank(mlp=Mlp(hidden=(11, 8))), make_bank(mlp=Mlp(hidden=(5, 5)))
        base, random = wide.initial("mlp", Key(1)), np.random.default_rng(0)
        layers = NETWORKS["mlp"][2]
        result = merged(narrow, FLAT, updates_of([permuted(wide, base, layers, random) for _ in range(3)]))
        assert result.layout == base.layout
        assert same_function(narrow, result, base)

    def test_no_hidden_layer_is_fedavg(self):
        bank = make_bank(mlp=Mlp(hidden=()))
        updates = updates_of([make_weights(bank, "mlp", seed) for seed in range(3)], [1, 5, 2])
        result, average = merged(bank, Matched(), updates), merged(bank, Mean(), updates)
        assert torch.allclose(result.flat, average.flat, atol=1e-7)


class TestOutputLayer:
    COUNTS = torch.tensor([[3.0, 0.0, 0.0], [1.0, 4.0, 0.0]])

    def updates(self, **more):
        bank = make_bank(mlp=Mlp(hidden=()))
        weights = [make_weights(bank, "mlp", seed) for seed in range(2)]
        return [
            make_update(w, client, 3 + 2 * client, extras={name: rows[client] for name, rows in more.items()})
            for client, w in enumerate(weights)
        ]

    @pytest.mark.parametrize(
        ("merge", "counted", "shares"),
        [
            (Matched(), True, [[0.75, 0.25], [0, 1], [0.375, 0.625]]),
            (Matched(), False, [[0.375, 0.625]] * 3),
            (Matched(weighting="uniform"), True, [[0.5, 0.5]] * 3),
        ],
        ids=["by class", "by examples", "uniform"],
    )
    def test_is_the_average_of_rows_class_by_class(self, merge, counted, shares):
        """The third class belongs to nobody, and is averaged as if there were no label counts."""
        updates = self.updates(**({"protocol/label_counts": self.COUNTS} if counted else {}))
        result = merged(make_bank(mlp=Mlp(hidden=())), merge, updates)
        for row, (one, other) in enumerate(shares):
            for name in ("classifier.weight", "classifier.bias"):
                first, second = (update.weights[name][row] for update in updates)
                assert torch.allclose(result[name][row], one * first + other * second, atol=1e-7)

    def test_a_layer_without_bias(self):
        layers = [Layer(torch.full((2, 3), value), None) for value in (1.0, 5.0)]
        result = output_layer(layers, torch.tensor([[0.25, 1.0], [0.75, 0.0]], dtype=torch.float64))
        assert result.bias is None
        assert result.weight.tolist() == [[4.0] * 3, [1.0] * 3]


class TestFederation:
    def federation(self, **parts):
        return make_federation(recipe=make_recipe(merge=Matched(), **parts), source=20)

    def test_rounds_go_on_with_layers_that_grew(self):
        after = played(self.federation())
        assert after.server.weights["mlp"]["layers.1.weight"].shape[0] > 5
        assert all(record.refused == () for record in after.server.history)

    @pytest.mark.parametrize("type_", ["float16", "bfloat16"])
    @pytest.mark.parametrize("protocol", [FullWeights(), LayerByLayer()], ids=["weights", "layers"])
    def test_half_precision_is_matched_as_well(self, protocol, type_):
        """Clients are offered networks of the architecture's own widths, whatever the server's have become."""
        halves, full = {"upload": (HalfPrecision(type=type_),), "protocol": protocol}, {"protocol": protocol}
        Recipe.model_validate({"merge": Matched(), **halves})
        after, expected = played(self.federation(**halves), 4), played(self.federation(**full), 4)
        counts = 4 * 3 if isinstance(protocol, LayerByLayer) else 0
        for number, (record, exact) in enumerate(zip(after.server.history, expected.server.history, strict=True), 1):
            assert record.refused == exact.refused == ()
            aside = 0 if number % 2 else 4 * counts  # label counts travel as they are
            assert record.bytes_up - aside == (exact.bytes_up - aside) / 2 > 0
        result = after.server.weights["mlp"]
        assert result["layers.1.weight"].shape[0] > 5
        assert result.flat.dtype == torch.float32
        assert not torch.equal(result["classifier.bias"], expected.server.weights["mlp"]["classifier.bias"])

    def test_same_key_same_bits(self):
        one, other = played(self.federation()), played(self.federation())
        assert one.server.weights["mlp"].equals(other.server.weights["mlp"])

    def test_a_checkpoint_keeps_the_widths(self, tmp_path):
        federation = self.federation()
        halfway = played(federation, 1)
        resumed = played(self.federation(), 2, through_a_checkpoint(halfway, tmp_path))
        assert resumed.server.weights["mlp"].equals(played(federation, 2, halfway).server.weights["mlp"])

    @pytest.mark.parametrize("start", ["average", "previous"])
    def test_wider_students_learn_from_teachers_of_other_widths(self, start):
        fuse = EnsembleDistillation(
            distiller=Distiller(steps=4, batch_size=8, evaluate_every=2),
            teachers=(ClientTeachers(), AverageTeacher()),
            start=start,
            views="augmented",
        )
        after = played(self.federation(fuse=fuse), 2)
        widths = after.server.weights["mlp"]["layers.1.weight"].shape[0]
        assert widths == 5 if start == "previous" else widths > 5

    @pytest.mark.usefixtures("without_pictures")
    def test_the_final_model_is_read_back(self, tmp_path):
        config = tiny_config(tiny_method("fedavg", merge={"kind": "matched"}))
        result = Experiment(config).run(tmp_path / "run")
        model = result.model()
        assert model.feature_size == model.classifier.in_features > 6
        assert result.summary["updates_refused"] == 0


class TestRefusals:
    @pytest.mark.parametrize(
        ("architecture", "words"),
        [(ResNet(arch="resnet8"), "(resnet8) does not allow: "), (TinyNorm(), "layers.2 is a BatchNorm1d")],
        ids=["shortcuts", "norm"],
    )
    def test_networks_that_are_no_chain(self, architecture, words):
        bank = ModelBank({"fine": Mlp(), "bad": architecture}, (3, 8, 8), 3, CPU)
        with pytest.raises(ConfigError, match="model 'bad'") as refusal:
            Matched().check(CheckContext(bank, Sgd(), has_validation=False))
        assert words in str(refusal.value)

    def test_chains_pass(self):
        bank = ModelBank({name: row[0] for name, row in NETWORKS.items() if name != "convnet"}, (1, 8, 8), 3, CPU)
        Matched().check(CheckContext(bank, Sgd(), has_validation=False))

    def test_weights_of_one_bit(self):
        words = "upload one_bit works on whole models of fixed widths, which protocol weights with merge matched does"
        with pytest.raises(ValueError, match=words):
            Recipe.model_validate({"upload": [{"kind": "one_bit"}], "merge": {"kind": "matched"}})

    @pytest.mark.parametrize("field", ["sigma", "sigma0", "gamma"])
    def test_parameters_out_of_range(self, field):
        with pytest.raises(ValueError, match=field):
            Matched(**{field: 0.0})
