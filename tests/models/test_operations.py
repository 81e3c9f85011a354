from __future__ import annotations

import torch

from fedfuse.models import Mlp
from fedfuse.models.operations import forward_operations, operations_of
from tests.helpers import TinyNorm, make_bank

FORWARD = 2 * (2 * 4 + 4 * 3)
"""Multiplications and additions of an MLP from 2 inputs over 4 to 3 outputs."""


def test_operations_of_a_small_network() -> None:
    assert forward_operations(Mlp(hidden=(4,)), (2,), 3) == FORWARD


def test_a_network_that_is_there_is_counted_alike_and_left_as_it_is() -> None:
    bank = make_bank(mlp=Mlp(hidden=(4,)), net=TinyNorm())
    for prototype, architecture in bank.architectures.items():
        network = bank.network(prototype).train()
        before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        expected = forward_operations(architecture, bank.input_shape, bank.classes)
        assert operations_of(network, bank.input_shape) == expected > 0
        assert network.training
        assert all(torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())
