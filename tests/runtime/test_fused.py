"""Optimisers straight on torch's kernels: the very bits of torch.optim, and torch.optim where they do not fit."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fedfuse.runtime import fused
from fedfuse.runtime.fused import FusedOptimizer
from fedfuse.runtime.optimizers import Adam, AdamW, Sgd

SETTINGS = {
    "sgd": Sgd(),
    "sgd with decay": Sgd(weight_decay=0.01),
    "sgd with momentum": Sgd(momentum=0.9, weight_decay=0.01),
    "sgd, biases spared": Sgd(momentum=0.9, weight_decay=0.1, decay_biases=False, decay_norms=False),
    "adam": Adam(),
    "adam with decay": Adam(weight_decay=0.01),
    "adam, norms spared": Adam(weight_decay=0.1, decay_norms=False),
    "adamw": AdamW(),
    "adamw, biases spared": AdamW(weight_decay=0.1, decay_biases=False),
}


def make_model(dtype: torch.dtype = torch.float32, channels_last: bool = False) -> nn.Module:
    layout = torch.channels_last if channels_last else torch.contiguous_format
    layers = [nn.Conv2d(2, 5, 3), nn.BatchNorm2d(5), nn.Flatten(), nn.Linear(5 * 9, 7), nn.ReLU(), nn.Linear(7, 3)]
    model = nn.Sequential(*layers).to(dtype=dtype, memory_format=layout)
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=random))
    return model


def trained(settings, steps=60, frozen=(), direct=True, **kind):
    """A model after many steps with rates that change, trained by the direct optimiser or by torch's."""
    model = make_model(**kind)
    groups = settings.groups(model)
    optimizer = settings.of(groups, 0.05) if direct else settings.by_torch(groups, 0.05, fused=True)
    assert isinstance(optimizer, FusedOptimizer) == direct
    random = torch.Generator().manual_seed(1)
    for step in range(steps):
        for parameter in (p for name, p in model.named_parameters() if name in frozen):
            parameter.requires_grad_(step % 20 >= 10 and not isinstance(settings, Sgd))
        for group in optimizer.param_groups:
            group["lr"] = 0.05 / (1 + step)
        inputs = torch.randn(6, 2, 5, 5, generator=random).to(next(model.parameters()).dtype)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), torch.arange(6) % 3).backward()
        optimizer.step()
    return model


def assert_same_bits(one: nn.Module, other: nn.Module) -> None:
    pairs = zip(one.named_parameters(), other.named_parameters(), strict=True)
    assert [name for (name, a), (_, b) in pairs if a.detach().numpy().tobytes() != b.detach().numpy().tobytes()] == []


@pytest.mark.parametrize("kind", [{}, {"channels_last": True}, {"dtype": torch.float64}], ids=str)
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_has_the_bits_of_torch_optim(settings, kind):
    assert_same_bits(trained(settings, **kind), trained(settings, direct=False, **kind))
    assert not torch.equal(next(trained(settings, **kind).parameters()), next(make_model(**kind).parameters()))


@pytest.mark.parametrize("frozen", [("0.weight",), ("3.weight", "3.bias", "1.weight")], ids=str)
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_parameters_without_gradient_stay_and_count_no_step(settings, frozen):
    """Of some steps with Adam; of all with SGD, because torch's fused SGD fails if a parameter joins later."""
    assert_same_bits(trained(settings, frozen=frozen), trained(settings, frozen=frozen, direct=False))


def test_a_parameter_that_joins_later_gets_its_own_momentum():
    late, early = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
    optimizer = Sgd(learning_rate=1.0, momentum=0.5).of([{"params": [late, early], "weight_decay": 0.0}])
    early.grad = torch.ones(2)
    optimizer.step()
    late.grad = torch.ones(2)
    optimizer.step()
    optimizer.step()
    assert early.tolist() == [-(1 + 1.5 + 1.75)] * 2
    assert late.tolist() == [-(1 + 1.5)] * 2


def test_zero_grad_forgets_gradients():
    model = make_model()
    model(torch.ones(2, 2, 5, 5)).sum().backward()
    Sgd().build(model).zero_grad()
    assert [parameter.grad for parameter in model.parameters()] == [None] * len(list(model.parameters()))


@pytest.mark.parametrize("settings", [Sgd(momentum=0.9), Adam(), AdamW()], ids=lambda settings: settings.kind)
def test_state_taken_over_before_the_first_step_continues(settings):
    """What a generator's training does when it goes on."""
    whole, halves = nn.Linear(3, 2), nn.Linear(3, 2)
    halves.load_state_dict(whole.state_dict())
    random = torch.Generator().manual_seed(0)
    gradients = [[torch.randn(p.shape, generator=random) for p in whole.parameters()] for _ in range(8)]

    def go_on(model, optimizer, some):
        for one in some:
            for parameter, gradient in zip(model.parameters(), one, strict=True):
                parameter.grad = gradient.clone()
            optimizer.step()

    go_on(whole, settings.build(whole), gradients)
    first = settings.build(halves)
    go_on(halves, first, gradients[:4])
    second = settings.build(halves)
    for parameter in halves.parameters():
        second.state[parameter] = {name: tensor.clone() for name, tensor in first.state[parameter].items()}
    go_on(halves, second, gradients[4:])
    assert_same_bits(whole, halves)


@pytest.mark.parametrize("settings", [Sgd(), Adam(), AdamW()], ids=lambda settings: settings.kind)
def test_torch_optim_steps_in_where_the_kernels_do_not_fit(settings, monkeypatch):
    mixed = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double())
    assert isinstance(settings.build(mixed), torch.optim.Optimizer)
    assert isinstance(settings.build(nn.Linear(2, 2, device="meta")), torch.optim.Optimizer)
    monkeypatch.setattr(fused, "KERNELS", ("_fused_of_another_version_",))
    assert isinstance(settings.build(nn.Linear(2, 2)), torch.optim.Optimizer)
