"""Experiments that a source may be opened for."""

from __future__ import annotations

import torch

from fedfuse.core.randomness import Key
from fedfuse.data import Examples, Normalisation, Transform
from fedfuse.parts.fuse import Surroundings
from tests.helpers import AS_IT_IS, CLASSES, CPU, make_examples

NOTHING = make_examples(0)


def around(public=NOTHING, clients=None, transform=AS_IT_IS, key=0, classes=CLASSES):
    own = make_examples(30) if clients is None else clients
    return Surroundings(public, own, transform, CPU, Key(key), classes)


def planar(count=10):
    examples = Examples(torch.randn(count, 2), torch.zeros(count, dtype=torch.long))
    return around(clients=examples, transform=Transform(Normalisation((0.0,) * 2, (1.0,) * 2), (2,)))


def images(count=10, side=8, key=0, augment=False):
    pixels = torch.randint(0, 256, (count, 1, side, side), dtype=torch.uint8)
    examples = Examples(pixels, torch.zeros(count, dtype=torch.long))
    transform = Transform(Normalisation((0.5,), (0.25,)), (1, side, side), crop_padding=2 if augment else 0)
    return around(clients=examples, transform=transform, key=key)
