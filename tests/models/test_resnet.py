"""The ResNet's variants against slow, independent definitions."""

from __future__ import annotations

import math

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from fedfuse.core.randomness import Key
from fedfuse.models import ResNet, create
from fedfuse.models.norm import norm
from fedfuse.models.residual import BasicBlock, PadShortcut


def option_a(x: Tensor, outputs: int) -> Tensor:
    """He et al.'s option A, entry by entry: half the resolution, the channels centred among zeros."""
    batch, inputs, height, width = x.shape
    result = torch.zeros(batch, outputs, math.ceil(height / 2), math.ceil(width / 2))
    first = (outputs - inputs) // 2
    for b in range(batch):
        for c in range(inputs):
            for i in range(0, height, 2):
                for j in range(0, width, 2):
                    result[b, first + c, i // 2, j // 2] = x[b, c, i, j]
    return result


@pytest.mark.parametrize("shape", [(2, 4, 8, 8), (1, 3, 5, 7)])
def test_pad_shortcut_is_option_a(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, generator=Key(0).torch())
    assert torch.equal(PadShortcut(shape[1], 2 * shape[1], 2)(x), option_a(x, 2 * shape[1]))


def test_a_block_whose_convolutions_are_zero_is_its_shortcut() -> None:
    block = BasicBlock(4, 8, 2, "pad", lambda channels: nn.BatchNorm2d(channels))
    for conv in (block.conv1, block.conv2):
        nn.init.zeros_(conv.weight)
    x = torch.randn(2, 4, 6, 6, generator=Key(0).torch())
    assert torch.equal(block(x), option_a(x, 8).relu())


def test_only_the_first_blocks_of_stages_two_and_three_change_shape() -> None:
    model = create(ResNet(arch="resnet20"), (3, 32, 32), 10, Key(0))
    blocks = [m for m in model.modules() if isinstance(m, BasicBlock)]
    assert len(blocks) == 9
    assert [i for i, b in enumerate(blocks) if not isinstance(b.shortcut, nn.Identity)] == [3, 6]
    assert [b.conv1.stride[0] for b in blocks] == [1, 1, 1, 2, 1, 1, 2, 1, 1]


def groups_by_channels(architecture: ResNet) -> dict[int, int]:
    layers = [m for m in create(architecture, (3, 8, 8), 10, Key(0)).modules() if isinstance(m, nn.GroupNorm)]
    assert len(layers) == 9
    return {layer.num_channels: layer.num_groups for layer in layers}


def test_group_counts_of_both_papers() -> None:
    fedgkd = {16: 1, 32: 2, 64: 4}
    assert groups_by_channels(ResNet(arch="resnet8", norm="group")) == fedgkd
    assert groups_by_channels(ResNet(arch="resnet8", norm="group", channels_per_group=16)) == fedgkd
    assert groups_by_channels(ResNet(arch="resnet8", norm="group", groups=2)) == {16: 2, 32: 2, 64: 2}


def test_channels_per_group_normalises_that_many_channels_together() -> None:
    x = 3 + 2 * torch.randn(2, 6, 4, 4, generator=Key(0).torch())
    slow = torch.empty_like(x)
    for b in range(2):
        for first in (0, 2, 4):
            group = x[b, first : first + 2]
            slow[b, first : first + 2] = (group - group.mean()) / (group.var(correction=0) + 1e-5).sqrt()
    torch.testing.assert_close(norm("group", 6, None, 2)(x), slow)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"norm": "group", "groups": 3}, "16 channels cannot be split into 3 equal groups"),
        ({"norm": "group", "channels_per_group": 32}, "16 channels cannot be split into groups of 32 channels"),
        (
            {"norm": "group", "width": 8},
            r"8 channels cannot be split into groups of 16 channels \(the default; set groups or channels_per_group\)",
        ),
        ({"norm": "group", "groups": 4, "channels_per_group": 4}, "give groups or channels_per_group, not both"),
        ({"groups": 4}, "groups need norm 'group', not 'batch'"),
        ({"norm": "none", "channels_per_group": 4}, "channels_per_group need norm 'group', not 'none'"),
    ],
)
def test_groups_that_do_not_fit_are_refused(fields: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        ResNet.model_validate({"arch": "resnet8", **fields})
