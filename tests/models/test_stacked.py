"""A twin computes for every client what the network does; networks of which that is not true are found out."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.models import Cnn, Mlp, ResNet, create
from fedfuse.models.adapt import adapt
from fedfuse.models.stacked import NoTwinError, Twin
from fedfuse.models.twin_proof import has_twin

CPU = torch.device("cpu")
IMAGE = (2, 8, 8)


class Own(nn.Module):
    """Layers around which the network does something of its own."""

    def __init__(self, between):
        super().__init__()
        self.first, self.last, self.between = nn.Linear(12, 8), nn.Linear(8, 4), between

    def forward(self, x):
        return self.last(self.between(self.first(x)))


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x * self.scale


class Idle(Scaled):
    def forward(self, x):
        return x


def own(between):
    with Key(0).default_generator():
        return adapt(Own(between), (12,), 4, "own")


def tied():
    layer = nn.Linear(12, 12)
    return adapt(nn.Sequential(layer, nn.ReLU(), layer, nn.Linear(12, 4)), (12,), 4, "tied")


STACKED = {
    "mlp": (lambda: create(Mlp(hidden=(8, 4)), (12,), 4, Key(0)), (12,)),
    "cnn": (lambda: create(Cnn(arch="cnn1"), IMAGE, 4, Key(0)), IMAGE),
    "residual": (lambda: create(ResNet(arch="resnet8", width=4, norm="none"), IMAGE, 4, Key(0)), IMAGE),
    "group norm": (lambda: create(ResNet(arch="resnet8", width=4, norm="group", groups=2), IMAGE, 4, Key(0)), IMAGE),
    "head": (lambda: create(Mlp(hidden=(8,), projection_head=4), (12,), 4, Key(0)), (12,)),
    "layer norm": (lambda: own(nn.LayerNorm(8)), (12,)),
    "own code": (lambda: own(lambda x: x + x.sin()), (12,)),
    "one layer twice": (tied, (12,)),
}
PLAIN = {
    "batch norm": (lambda: create(ResNet(arch="resnet8", width=4), IMAGE, 4, Key(0)), IMAGE),
    "dropout": (lambda: own(nn.Dropout(0.5)), (12,)),
    "own dropout": (lambda: own(lambda x: x * torch.rand(()).round()), (12,)),
    "parameters of its own": (lambda: own(Scaled()), (12,)),
    "mean over channels": (lambda: own(lambda x: x - x.mean(dim=1, keepdim=True)), (12,)),
    "mean over the batch": (lambda: own(lambda x: x - x.mean(dim=0)), (12,)),
    "shape by number": (lambda: own(lambda x: x.view(-1, 8)), (12,)),
    "one parameter never used": (lambda: own(Idle()), (12,)),
}


@pytest.mark.parametrize("name", STACKED)
def test_these_networks_have_twins(name):
    make, shape = STACKED[name]
    assert has_twin(make(), shape, 8, 8, CPU)


@pytest.mark.parametrize("name", PLAIN)
def test_these_have_none(name):
    make, shape = PLAIN[name]
    assert not has_twin(make(), shape, 8, 8, CPU)


def test_the_proof_leaves_the_network_and_the_default_generator_alone():
    network = own(nn.Dropout(0.5))
    weights, before = Weights.of(network), torch.default_generator.get_state()
    has_twin(network, (12,), 4, 3, CPU)
    assert Weights.of(network).equals(weights)
    assert torch.equal(torch.default_generator.get_state(), before)


def test_an_unknown_layer_is_named():
    with pytest.raises(NoTwinError, match="Scaled"):
        Twin(own(Scaled()), 2, CPU)


@pytest.mark.parametrize("name", ["mlp", "residual"])
def test_what_is_written_is_read_and_is_in_the_places(name):
    network = STACKED[name][0]()
    twin, size = Twin(network, 3, CPU), Weights.of(network).layout.size
    rows = torch.randn(3, size, generator=Key(1).torch())
    twin.write(rows)
    assert torch.equal(twin.read(), rows)
    for place, row in zip(twin.places, rows, strict=True):
        assert torch.equal(Weights.of(place).flat, row)


def test_what_is_done_in_a_place_is_done_in_the_stack():
    twin = Twin(STACKED["mlp"][0](), 3, CPU)
    twin.share_gradients()
    with torch.no_grad():
        for parameter in twin.places[1].parameters():
            parameter.fill_(2.0)
            parameter.grad.fill_(3.0)
    assert twin.read().sum(dim=1).tolist() == [0, 2 * twin.layout.size, 0]
    assert twin.by_client([p.grad for p in twin.parameters]).sum(dim=1).tolist() == [0, 3 * twin.layout.size, 0]
    twin.clear_gradients()
    assert not any(parameter.grad.any() for place in twin.places for parameter in place.parameters())
