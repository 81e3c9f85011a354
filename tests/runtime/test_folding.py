"""A folded network says what the other one says, and one that would not is left as it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from fedfuse.core.randomness import Key
from fedfuse.models import Cnn, ResNet
from fedfuse.models.modes import batch_norms
from fedfuse.runtime.bank import TEACHER, ModelBank
from fedfuse.runtime.folding import folded
from tests.helpers import CPU, make_weights

FOLDING = replace(CPU, fold=True)
NET = {"net": ResNet(arch="resnet8", width=4)}


def net(compute=FOLDING):
    return ModelBank(NET, (3, 8, 8), 5, compute)


def images(count=9):
    return torch.randn(count, 3, 8, 8, generator=torch.Generator().manual_seed(1))


@torch.no_grad()
def said(bank, weights):
    return bank.lend_to_ask("net", weights, TEACHER).eval()(bank.compute.inputs(images()))


@pytest.mark.parametrize("channels_last", [False, True])
def test_the_same_within_rounding_for_weights_after_weights(channels_last):
    plain, folding = (net(replace(CPU, fold=fold, channels_last=channels_last)) for fold in (False, True))
    for seed in (1, 2):
        weights = make_weights(plain, "net", seed)
        torch.testing.assert_close(said(folding, weights), said(plain, weights), rtol=1e-4, atol=1e-5)


def test_there_is_one_copy_and_it_has_no_norm():
    bank = net()
    copies = {id(bank.lend_to_ask("net", make_weights(bank, "net", seed), TEACHER)) for seed in range(3)}
    assert len(copies) == 1
    assert not batch_norms(bank.lend_to_ask("net", make_weights(bank, "net", 1), TEACHER))


def test_the_resident_is_as_it_was():
    bank = net()
    weights = make_weights(bank, "net", 1)
    bank.lend_to_ask("net", weights, TEACHER)
    assert len(batch_norms(bank.lend("net", weights, TEACHER))) == len(batch_norms(bank.lend("net", weights)))
    assert not any(module._forward_hooks for module in bank.lend("net", weights, TEACHER).modules())


def test_without_the_setting_nothing_is_folded():
    bank = net(CPU)
    weights = make_weights(bank, "net", 1)
    assert bank.lend_to_ask("net", weights, TEACHER) is bank.lend("net", weights, TEACHER)


def test_a_network_without_norms_is_asked_itself():
    bank = ModelBank({"cnn": Cnn(arch="cnn1")}, (3, 8, 8), 5, FOLDING)
    weights = bank.initial("cnn", Key(1))
    assert bank.lend_to_ask("cnn", weights, TEACHER) is bank.lend("cnn", weights, TEACHER)


def test_first_asked_in_an_evaluation_and_later_elsewhere():
    bank = net()
    with torch.inference_mode():
        said(bank, make_weights(bank, "net", 1))
    said(bank, make_weights(bank, "net", 2))


class Simple(nn.Module):
    """A convolution and a norm, with something in between or around them."""

    def __init__(self, way, **norm):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, bias=way != "no bias")
        self.norm = nn.BatchNorm2d(4, **norm)
        self.way = way

    def forward(self, x):
        h = self.conv(x)
        if self.way == "used twice":
            return self.norm(h) + h
        if self.way == "relu in place":
            return self.norm(h.relu_())
        if self.way == "relu":
            return self.norm(h.relu())
        if self.way == "called twice":
            return self.norm(h) + self.conv(x.flip(0))
        return self.norm(h)


@pytest.mark.parametrize("way", ["used twice", "relu in place", "relu", "called twice"])
def test_what_would_change_is_left_alone(way):
    assert folded(Simple(way), images()) is None


@pytest.mark.parametrize("more", [{}, {"affine": False}, {"eps": 0.1}], ids=str)
@pytest.mark.parametrize("way", ["with bias", "no bias"])
def test_all_kinds_of_norms(way, more):
    model = Simple(way, **more).eval()
    with torch.no_grad():
        model.norm.running_var += 3
        model.norm.running_mean -= 2
        copy = folded(model, images())
        torch.testing.assert_close(copy.refreshed()(images()), model(images()), rtol=1e-4, atol=1e-5)


def test_a_norm_without_running_statistics_is_left_alone():
    assert folded(Simple("no bias", track_running_stats=False), images()) is None
