"""Hidden units that may change places: whatever order they are put into, the network computes the same."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.core.text import TextShape
from fedfuse.core.weights import Weights
from fedfuse.models import ARCHITECTURES, create
from fedfuse.models.adapt import logits_of, probe_batch
from fedfuse.models.permutations import rules, units_of

IMAGES, TEXTS = (3, 16, 16), TextShape(length=9, vocabulary=50)
SMALL = {
    "vgg9": {},
    "resnet50": {"width": 4},
    "resnet18": {"width": 8, "stem": "large", "dropout": 0.5},
    "shufflenetv2": {"width": 12, "last": 16},
    "mobilenetv2": {"width": 4},
    "resnet44": {"width": 4, "shortcut": "pad"},
    "resnet56": {"width": 4},
    "resnet32": {"width": 4, "norm": "none"},
    "resnet8": {"norm": "group", "channels_per_group": 4},
    "text_cnn": {"embedding": 8, "channels": 6, "projection_head": 5},
    "text_transformer": {"width": 8, "heads": 2},
    "mlp": {"hidden": (9, 7), "projection_head": 5},
}
ZOO = [name for name, listed in ARCHITECTURES.items() if listed.has_defaults]


def of_zoo(name):
    shape = TEXTS if name.startswith("text") else (3, 32, 32) if name in ("vgg9", "convnet") else IMAGES
    return create(ARCHITECTURES[name].config(arch=name, **SMALL.get(name, {})), shape, 5, Key(1)), probe_batch(shape)


def shaken(network):
    """No two units alike, running statistics included."""
    network, random = copy.deepcopy(network).double().eval(), Key(7).torch()
    with torch.no_grad():
        for tensor in (*network.parameters(), *(b for b in network.buffers() if b.is_floating_point())):
            tensor.add_(torch.rand(tensor.shape, generator=random), alpha=0.1)
    return network


def moved(network, example, seed):
    """The network and its like with all groups in random orders."""
    units, random = units_of(network, example), Key(seed).torch()
    orders = [torch.randperm(group.size, generator=random) for group in units.groups]
    one = shaken(network)
    other = copy.deepcopy(one)
    weights = Weights.of(one)
    tensors = units.reordered(weights, orders)
    Weights(torch.cat([tensors[name].reshape(-1) for name in weights]), weights.layout).load_into(other)
    return units, one, other


def answer(network, example):
    with torch.no_grad():
        return logits_of(network(example.double() if example.is_floating_point() else example))


def assert_same_function(network, example):
    units, one, other = moved(network, example, seed=3)
    assert units.groups
    assert not Weights.of(one).equals(Weights.of(other))
    fresh = example.flip(0).roll(1, -1)
    torch.testing.assert_close(answer(one, fresh), answer(other, fresh), rtol=1e-9, atol=1e-9)
    return units


@pytest.mark.parametrize("name", ZOO)
def test_every_architecture_computes_the_same(name):
    network, example = of_zoo(name)
    units = assert_same_function(network, example)
    assert not units.unfollowed
    hidden = {axis.tensor for group in units.groups for axis in group.axes}
    weights = {name for name, p in network.named_parameters() if p.ndim > 1}
    assert hidden >= weights, "every matrix and kernel has units"


def sizes(network, example):
    return sorted(group.size for group in assert_same_function(network, example).groups)


class Code(nn.Module):
    """Layers, and what is done with them."""

    def __init__(self, forward, **layers):
        super().__init__()
        self.code = forward
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, x):
        return self.code(self, x)


def rotary(net, x):
    q, k, v = (layer(net.a(x)).view(3, 7, 2, 4).transpose(1, 2) for layer in (net.q, net.k, net.v))
    angle = torch.arange(7.0).double()[:, None] * torch.tensor([1.0, 0.1, 1.0, 0.1]).double()
    q, k = (z * angle.cos() + torch.cat([-z[..., 2:], z[..., :2]], -1) * angle.sin() for z in (q, k))
    return net.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(3, 7, 8).mean(1))


def dense(net, x):
    a = net.a(x).relu()
    b = net.b(a).relu()
    return net.o(torch.cat([a, b, net.c(torch.cat([a, b], 1))], 1).mean((2, 3)))


def excited(net, x):
    a = net.a(x).relu()
    return net.o((a * net.gate(a.mean((2, 3)))[:, :, None, None]).amax((2, 3)))


STEPS, PIXELS = (3, 7, 5), (3, 3, 8, 8)
torch.manual_seed(0)
OTHERS = {
    # name: network, shape of its inputs, sizes of its groups
    "lstm": (
        Code(lambda n, x: n.o(n.a(x)[0][:, -1]), a=nn.LSTM(5, 6, 2, batch_first=True), o=nn.Linear(6, 4)),
        STEPS,
        [6, 6],
    ),
    "gru": (Code(lambda n, x: n.o(n.a(x)[0].mean(1)), a=nn.GRU(5, 6, batch_first=True), o=nn.Linear(6, 4)), STEPS, [6]),
    "gate": (nn.Sequential(nn.Flatten(), nn.Linear(35, 12), nn.GLU(), nn.Linear(6, 4)), STEPS, [6]),
    "attention": (
        Code(
            lambda n, x: n.o(n.m(*(n.a(x),) * 3)[0].mean(1)),
            a=nn.Linear(5, 8),
            m=nn.MultiheadAttention(8, 2, batch_first=True),
            o=nn.Linear(8, 4),
        ),
        STEPS,
        [4, 4, 4, 4, 8, 8],  # in each head queries with keys, and values; heads stay in place
    ),
    "rotary": (
        Code(rotary, a=nn.Linear(5, 12), q=nn.Linear(12, 8), k=nn.Linear(12, 8), v=nn.Linear(12, 8), o=nn.Linear(8, 4)),
        STEPS,
        [4, 4, 12],  # values of each head; queries and keys have an order
    ),
    "dense": (
        Code(
            dense,
            a=nn.Conv2d(3, 8, 3),
            b=nn.Conv2d(8, 4, 3, padding=1),
            c=nn.Conv2d(12, 6, 3, padding=1),
            o=nn.Linear(18, 4),
        ),
        PIXELS,
        [4, 6, 8],
    ),
    "excited": (
        Code(
            excited,
            a=nn.Conv2d(3, 8, 3),
            gate=nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 8), nn.Sigmoid()),
            o=nn.Linear(8, 4),
        ),
        PIXELS,
        [4, 8],
    ),
    "groups": (
        nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 12, 3, groups=4), nn.ReLU(), nn.Flatten(), nn.Linear(192, 4)
        ),
        PIXELS,
        [2, 3, 3, 3, 3],
    ),
    "multiplier": (
        nn.Sequential(
            nn.Conv2d(3, 8, 3),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, groups=8),
            nn.Flatten(),
            nn.BatchNorm1d(256),
            nn.Linear(256, 4),
        ),
        PIXELS,
        [8],
    ),
    "channels last": (
        Code(
            lambda n, x: n.o(n.a(x).permute(0, 2, 3, 1).reshape(len(x), -1)), a=nn.Conv2d(3, 8, 3), o=nn.Linear(288, 4)
        ),
        PIXELS,
        [8],
    ),
    "norms": (
        nn.Sequential(
            nn.Conv2d(3, 8, 3),
            nn.InstanceNorm2d(8, affine=True),
            nn.PReLU(8),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.LayerNorm(32),
            nn.Linear(32, 4),
        ),
        PIXELS,
        [8],
    ),
    "sequence": (
        nn.Sequential(
            nn.Conv1d(7, 8, 2),
            nn.BatchNorm1d(8),
            nn.MaxPool1d(2),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
            nn.Linear(8, 4),
        ),
        STEPS,
        [8],
    ),
    "upwards": (
        nn.Sequential(
            nn.Conv2d(3, 8, 3),
            nn.MaxPool2d(2),
            nn.Upsample(scale_factor=2),
            nn.ConvTranspose2d(8, 6, 3),
            nn.Flatten(),
            nn.Linear(384, 4),
        ),
        PIXELS,
        [6, 8],
    ),
    "mixer": (
        Code(
            lambda n, x: n.o((n.a(x) + n.t(n.a(x).transpose(1, 2)).transpose(1, 2)).mean(1)),
            a=nn.Linear(5, 8),
            t=nn.Sequential(nn.Linear(7, 6), nn.GELU(), nn.Linear(6, 7)),
            o=nn.Linear(8, 4),
        ),
        STEPS,
        [6, 8],
    ),
    "shared layer": (
        Code(
            lambda n, x: n.o(n.b(n.b(n.a(x)).relu()).mean(1)), a=nn.Linear(5, 8), b=nn.Linear(8, 8), o=nn.Linear(8, 4)
        ),
        STEPS,
        [8],
    ),
    "half of a mean": (  # the first five have a mean of their own, the others have not
        Code(
            lambda n, x: n.o(torch.cat([n.a(x)[..., :5].mean(2), n.a(x).mean(1)], 1)),
            a=nn.Linear(5, 8),
            o=nn.Linear(15, 4),
        ),
        STEPS,
        [3, 5],
    ),
    "one of them apart": (
        Code(lambda n, x: n.o((n.a(x) * n.a(x)[..., :1]).mean(1)), a=nn.Linear(5, 8), o=nn.Linear(8, 4)),
        STEPS,
        [7],
    ),
    "mirrored": (
        Code(lambda n, x: n.o((n.a(x) + n.a(x).flip(2)).relu().mean(1)), a=nn.Linear(5, 8), o=nn.Linear(8, 4)),
        STEPS,
        [4],
    ),
}


@pytest.mark.parametrize("name", list(OTHERS))
def test_networks_of_others(name):
    network, shape, expected = OTHERS[name]
    assert sizes(network, torch.rand(shape, generator=Key(2).torch())) == expected


def small(forward, **more):
    return Code(forward, a=nn.Linear(5, 8), o=nn.Linear(8, 4), **more)


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (
            small(lambda n, x: n.o(n.a(x).sort(2).values.mean(1))),
            r"'forward' does with them what is not known \(sort\)",
        ),
        (small(lambda n, x: n.o(n.a(x).mean(1)), z=nn.Linear(2, 2)), "'z.weight' takes no part in its answers"),
        (small(lambda n, x: n.o(n.a(x).mean(1) / 0), z=None), "does not compute the same"),
        (small(lambda n, x: n.nothing(x)), "cannot be followed: AttributeError"),
        (nn.Sequential(nn.Flatten(), nn.Linear(35, 4)), "no hidden units"),
        (small(lambda n, x: n.o((n.a(x) + n.a(x).roll(1, 2)).mean(1))), "no hidden units"),
    ],
)
def test_refused_in_one_sentence(network, words):
    with pytest.raises(ConfigError, match=words) as refused:
        units_of(network, torch.rand(STEPS)).required(partly=False)
    assert "\n" not in str(refused.value)


def test_partly():
    """What cannot be followed stays where it is."""

    def forward(net, x):
        return net.o(net.b(net.a(x).sort(2).values).relu().mean(1))

    network = Code(forward, a=nn.Linear(5, 8), b=nn.Linear(8, 6), o=nn.Linear(6, 4))
    assert sizes(network, torch.rand(STEPS)) == [6]
    with pytest.raises(ConfigError, match="partly: true"):
        units_of(network, torch.rand(STEPS)).required(partly=False)
    assert units_of(network, torch.rand(STEPS)).required(partly=True).unfollowed


def test_a_wrong_rule_is_found_out(monkeypatch):
    """Nothing is believed that the network's answers do not bear out."""
    network, example = of_zoo("resnet8")
    monkeypatch.setattr(rules, "normalised_in_groups", lambda _ties, x, _groups: x.known)
    with pytest.raises(ConfigError, match="does not compute the same"):
        units_of(network, example)


def test_the_network_and_the_random_numbers_of_others_are_left_alone():
    network, example = of_zoo("resnet18")
    network.train()
    before, state = Weights.of(network), torch.default_generator.get_state()
    with torch.inference_mode():
        units_of(network, example)
    assert Weights.of(network).equals(before)
    assert network.training
    assert torch.equal(torch.default_generator.get_state(), state)
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in network.modules())
