"""The projection head of MOON and FedGKD+, on any architecture."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from fedfuse.core.randomness import Key
from fedfuse.models import Mlp, ResNet, create, parameter_count


def test_resnet8_with_a_head_of_256_has_the_papers_size() -> None:
    model = create(ResNet(arch="resnet8", projection_head=256), (3, 32, 32), 10, Key(0))
    assert parameter_count(model) == 100_762


@pytest.mark.parametrize(
    "architecture", [Mlp(hidden=(6,), projection_head=5), ResNet(arch="resnet8", projection_head=5)]
)
def test_features_are_the_heads_output(architecture: Mlp | ResNet) -> None:
    model = create(architecture, (3, 8, 8), 4, Key(0)).eval()
    x = torch.randn(2, 3, 8, 8)
    parameters = dict(model.named_parameters())
    hidden = F.relu(F.linear(model.body.features(x), parameters["head.0.weight"], parameters["head.0.bias"]))
    projected = F.linear(hidden, parameters["head.2.weight"], parameters["head.2.bias"])
    assert model.feature_size == 5
    torch.testing.assert_close(model.features(x), projected)
    torch.testing.assert_close(
        model(x), F.linear(projected, parameters["classifier.weight"], parameters["classifier.bias"])
    )


def test_without_a_head_nothing_changes() -> None:
    one, other = (create(Mlp(hidden=(6,), projection_head=None), (4,), 3, Key(1)) for _ in range(2))
    assert "head.0.weight" not in dict(one.named_parameters())
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
