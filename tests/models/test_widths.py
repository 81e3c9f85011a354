"""Networks of other widths: built, lent by the bank, saved and loaded."""

from __future__ import annotations

import pytest
import torch

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Layout, Weights
from fedfuse.models import Cnn, CnnDeep, ConvNet, Mlp, ResNet, create
from fedfuse.models.saved import load_model, save_model
from fedfuse.models.widths import fitted
from tests.helpers import make_bank

SHAPE = (1, 8, 8)
PAIRS = [
    (Mlp(hidden=(4, 5)), Mlp(hidden=(9, 2))),
    (Cnn(arch="cnn1"), Cnn(arch="cnn1", channels=5)),
    (CnnDeep(channels=(3, 4)), CnnDeep(channels=(5, 2))),
]
"""An architecture, and the same one with other widths by its own parameters."""
pairs = pytest.mark.parametrize(("narrow", "wide"), PAIRS, ids=["mlp", "cnn", "deep"])


def weights_of(architecture, seed=1):
    return Weights.of(create(architecture, SHAPE, 3, Key(seed)))


@pairs
def test_fitted_is_the_network_that_its_parameters_would_build(narrow, wide):
    weights = weights_of(wide)
    model = fitted(create(narrow, SHAPE, 3, Key(2)), weights.layout)
    weights.load_into(model)
    expected = create(wide, SHAPE, 3, Key(1))
    x = torch.randn(4, *SHAPE, generator=Key(0).torch())
    assert torch.equal(model(x), expected(x))
    assert model.feature_size == expected.feature_size
    assert repr(model) == repr(expected)
    assert all(p.requires_grad for p in model.parameters())


def test_a_projection_head_follows_its_body():
    narrow, wide = Mlp(hidden=(4,), projection_head=3), Mlp(hidden=(7,), projection_head=3)
    model = fitted(create(narrow, SHAPE, 3, Key(2)), weights_of(wide).layout)
    assert (model.body.feature_size, model.feature_size) == (7, 3)


def test_its_own_layout_leaves_a_network_as_it_is():
    model = create(ResNet(arch="resnet8"), SHAPE, 3, Key(0))
    before = Weights.of(model)
    assert fitted(model, Layout.of(model)) is model
    assert Weights.of(model).equals(before)


@pytest.mark.parametrize(
    "other",
    [Mlp(hidden=(4,)), Mlp(hidden=(4, 5, 6)), CnnDeep(), Mlp(hidden=(4, 5), projection_head=2)],
    ids=["fewer layers", "more layers", "other layers", "head"],
)
def test_another_network_is_refused(other):
    with pytest.raises(ValueError, match="not those of a wider or narrower network"):
        fitted(create(Mlp(hidden=(4, 5)), SHAPE, 3, Key(0)), weights_of(other).layout)


def test_layers_that_do_not_fit_each_other_are_refused():
    model = create(Mlp(hidden=(4, 5)), SHAPE, 3, Key(0))
    wrong = {**dict(Layout.of(model).parameters), "layers.1.weight": (9, 64), "layers.1.bias": (9,)}
    with pytest.raises(ConfigError, match=r"the 4 inputs of layers\.3 are not the 9 neurons"):
        fitted(model, Layout(tuple(wrong.items()), ()))


class TestBank:
    def bank(self):
        return make_bank(mlp=Mlp(hidden=(5,)))

    def weights(self, width, seed=1):
        return make_bank(mlp=Mlp(hidden=(width,))).initial("mlp", Key(seed))

    def test_lends_other_widths_beside_its_own(self):
        bank, own, wide = self.bank(), self.weights(5), self.weights(8)
        first, second = bank.lend("mlp", own), bank.lend("mlp", wide)
        assert Weights.of(first).equals(own)
        assert Weights.of(second).equals(wide)
        assert bank.lend("mlp", own) is first
        assert bank.layout("mlp") == own.layout

    def test_one_resident_serves_all_weights_of_the_same_widths(self):
        bank, one, other = self.bank(), self.weights(8, 1), self.weights(8, 2)
        assert one.layout is not other.layout
        first = bank.lend("mlp", one)
        assert bank.lend("mlp", other) is first
        assert Weights.of(first).equals(other)
        assert bank.lend("mlp", one, "teacher") is not first

    def test_only_the_newest_widths_stay(self):
        bank = self.bank()
        first = bank.lend("mlp", self.weights(8))
        bank.lend("mlp", self.weights(9))
        assert bank.lend("mlp", self.weights(8)) is not first

    def test_a_network_first_asked_for_in_an_evaluation_can_be_trained(self):
        bank = self.bank()
        with torch.inference_mode():
            bank.lend("mlp", self.weights(8))
        bank.lend("mlp", self.weights(8))(torch.ones(2, 4)).sum().backward()


@pairs
def test_a_saved_network_comes_back_with_its_widths(tmp_path, narrow, wide):
    weights = weights_of(wide)
    save_model(tmp_path / "model", narrow, SHAPE, 3, weights)
    model = load_model(tmp_path / "model")
    assert Weights.of(model).equals(weights)
    assert not model.training


def test_saved_weights_of_another_network_are_refused(tmp_path):
    save_model(tmp_path / "model", ConvNet(), (3, 18, 18), 3, weights_of(Mlp()))
    with pytest.raises(DataError, match="does not fit the network that 'convnet' builds"):
        load_model(tmp_path / "model")
