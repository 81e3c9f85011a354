"""Generators of any shape of inputs."""

from __future__ import annotations

import pytest
import torch

from fedfuse.data import Normalisation
from fedfuse.parts.sources.synthesised.networks import build_generator


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (1, 28, 28), (2, 5, 9), (3, 1, 1), (1, 70, 33)])
def test_images_of_any_size_from_0_to_1(shape):
    made = build_generator(shape, True, latent=6, width=3, constants=Normalisation((), ()))(torch.randn(4, 6))
    assert made.shape == (4, *shape)
    assert 0 <= made.min() <= made.max() <= 1


def test_large_images_begin_small():
    """Parameters grow with the latent numbers and the channels, not with the pixels."""
    small, large = (build_generator((3, side, side), True, 6, 3, Normalisation((), ())) for side in (32, 224))
    sizes = [sum(parameter.numel() for parameter in network.parameters()) for network in (small, large)]
    assert sizes[1] < 2 * sizes[0]


def test_features_have_the_constants_of_the_data():
    constants = Normalisation((3.0, -1.0), (0.5, 20.0))
    made = build_generator((2,), False, latent=6, width=3, constants=constants)(torch.randn(50, 6))
    assert made.mean(dim=0).tolist() == pytest.approx([3, -1], abs=1e-4)
    assert made.std(dim=0, correction=0).tolist() == pytest.approx([0.5, 20], rel=1e-3)
