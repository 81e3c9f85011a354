"""The thesis's networks, written down once more in its own order of layers."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from fedfuse.models import Cnn, CnnDeep

PIXELS = torch.randint(-3, 4, (6, 1, 28, 28), generator=torch.Generator().manual_seed(0)).float()  # ties and zeros
LABELS = torch.tensor([0, 1, 2, 3, 4, 0])


@pytest.mark.parametrize(
    ("architecture", "pools"), [(Cnn(arch=name), [4]) for name in ("cnn1", "cnn2", "cnn3")] + [(CnnDeep(), [2, 2])]
)
def test_pooling_before_relu_changes_no_bit(architecture: Cnn | CnnDeep, pools: list[int]) -> None:
    network = architecture.build((1, 28, 28), 5)
    parameters = list(network.parameters())
    *kernels, linear = zip(parameters[0::2], parameters[1::2], strict=True)
    features = PIXELS
    for (weight, bias), pool in zip(kernels, pools, strict=True):
        features = F.max_pool2d(F.relu(F.conv2d(features, weight, bias, padding=2)), pool)
    printed = F.cross_entropy(F.linear(features.flatten(1), *linear), LABELS)
    ours = F.cross_entropy(network(PIXELS), LABELS)
    assert torch.equal(ours, printed)
    gradients = zip(torch.autograd.grad(ours, parameters), torch.autograd.grad(printed, parameters), strict=True)
    assert all(torch.equal(mine, theirs) for mine, theirs in gradients)
