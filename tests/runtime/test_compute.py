"""The thread count is fixed inside the block and the caller's afterwards."""

from __future__ import annotations

import pytest
import torch

from fedfuse.core.errors import ConfigError
from fedfuse.runtime.compute import Compute, ComputeSettings


@pytest.mark.parametrize("fails", [False, True])
def test_threads_are_given_back(fails):
    before = torch.get_num_threads()
    compute = Compute(torch.device("cpu"), threads=before + 1, channels_last=False)
    try:
        with compute.fixed_threads():
            assert torch.get_num_threads() == before + 1
            if fails:
                raise RuntimeError
    except RuntimeError:
        pass
    assert torch.get_num_threads() == before


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without cuda")
def test_a_missing_device_is_named():
    with pytest.raises(ConfigError, match=r"compute\.device is 'cuda'"):
        Compute.of(ComputeSettings(device="cuda"))


def test_channels_last_changes_the_storage_and_not_the_values():
    compute = Compute(torch.device("cpu"), 1, channels_last=True)
    images = torch.randn(2, 3, 4, 4)
    assert compute.inputs(images).is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(compute.inputs(images), images)
    assert torch.equal(compute.inputs(images[:, 0, 0]), images[:, 0, 0])
