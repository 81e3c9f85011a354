"""The networks fit every shape, and the loss is the negative evidence bound computed in another way."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Bernoulli, Normal, kl_divergence

from fedfuse.parts.sources.generators.vae import Decoder, Encoder, VaeSettings, vae_loss

SMALL = VaeSettings(latent=3, hidden=7, channels=4)
SHAPES = [(5,), (1, 8, 8), (3, 4, 6), (1, 28, 28), (3, 32, 32), (1, 9, 17), (3, 33, 64), (2, 3)]


def networks(shape, classes=4):
    low, high = torch.zeros(()), torch.ones(())
    return Encoder(SMALL, shape, classes), Decoder(SMALL, shape, classes, low, high)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_codes_and_inputs_have_their_shapes(shape):
    encoder, decoder = networks(shape)
    inputs, labels = torch.rand(6, *shape), torch.arange(6) % 4
    mean, log_variance = encoder(inputs, labels)
    assert mean.shape == log_variance.shape == (6, 3)
    logits = decoder(mean, labels)
    assert logits.shape == inputs.shape
    made = decoder.imitate(mean, labels)
    assert bool(((made > 0) & (made < 1)).all())


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 28, 28)])
def test_both_networks_depend_on_the_class(shape):
    encoder, decoder = networks(shape)
    inputs, one, other = torch.rand(2, *shape), torch.zeros(2, dtype=torch.long), torch.ones(2, dtype=torch.long)
    assert not torch.equal(encoder(inputs, one)[0], encoder(inputs, other)[0])
    codes = torch.randn(2, 3)
    assert not torch.equal(decoder(codes, one), decoder(codes, other))


def test_only_larger_images_are_convolved():
    def convolutions(shape):
        return [type(layer).__name__ for layer in networks(shape)[1].modules()].count("ConvTranspose2d")

    assert [convolutions(shape) for shape in ((9,), (1, 8, 8), (1, 9, 9), (1, 28, 28), (3, 64, 64))] == [0, 0, 1, 2, 3]


def test_the_range_of_the_data_is_kept():
    low, high = torch.tensor([-3.0, 5.0]), torch.tensor([-2.0, 9.0])
    decoder = Decoder(SMALL, (2,), 2, low, high)
    codes, labels = 5 * torch.randn(50, 3), torch.zeros(50, dtype=torch.long)
    unit = (decoder.imitate(codes, labels) - low) / (high - low)
    assert torch.allclose(unit, torch.sigmoid(decoder(codes, labels)), atol=1e-5)


@pytest.mark.parametrize("weight", [0.0, 1.0, 2.5])
def test_loss_against_torchs_distributions(weight):
    inputs = torch.randint(0, 2, (6, 1, 4, 4)).double()
    logits, mean, log_variance = (
        torch.randn(6, 1, 4, 4).double(),
        torch.randn(6, 3).double(),
        torch.randn(6, 3).double(),
    )
    likelihood = Bernoulli(logits=logits).log_prob(inputs).flatten(1).sum(1)
    divergence = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(0.0, 1.0)).sum(1)
    expected = (weight * divergence - likelihood).mean()
    assert torch.allclose(vae_loss(inputs, logits, mean, log_variance, weight), expected)


def test_the_best_reconstruction_of_a_gray_value_is_that_value():
    inputs = torch.rand(2, 5, dtype=torch.float64)
    logits = torch.logit(inputs).requires_grad_()
    nothing = torch.zeros(2, 1, dtype=torch.float64)
    vae_loss(inputs, logits, nothing, nothing).backward()
    assert torch.allclose(logits.grad, torch.zeros_like(inputs), atol=1e-12)
