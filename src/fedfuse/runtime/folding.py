"""BatchNorm folded into the layer before it, for networks that are asked and never trained.

With running statistics, a layer W x + b and the norm after it are one layer:

    gamma ((W x + b) - mean) / sqrt(var + eps) + beta  =  (s W) x + (s (b - mean) + beta),   s = gamma / sqrt(var + eps)

Which layer a norm follows is seen by watching what they are given in one pass. That this was all is proved before use:
with random statistics and in double precision, the folded network says what the other one says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from fedfuse.models.modes import BatchNorm, batch_norms

LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
TOLERANCE = 1e-8
"""How far a folded network may be from the other one, in double precision and relative to the largest output."""

Pair = tuple[str, str]
"""The names of a layer and of the norm after it."""


class Folded:
    """A folded copy of one network, whose weights follow the network's when they are refreshed."""

    def __init__(self, model: nn.Module, pairs: Sequence[Pair]) -> None:
        self.model = model
        self.network = deepcopy(model).requires_grad_(False).eval()
        self._pairs = [
            (model.get_submodule(layer), model.get_submodule(norm), self._without_norm(layer, norm))
            for layer, norm in pairs
        ]
        merged = {f"{name}.{part}" for pair in pairs for name in pair for part in ("weight", "bias")}
        originals = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        copies = {**dict(self.network.named_parameters()), **dict(self.network.named_buffers())}
        self._others = [(tensor, originals[name]) for name, tensor in copies.items() if name not in merged]

    def _without_norm(self, layer: str, norm: str) -> nn.Module:
        """The copy's layer, which has a bias now and nothing behind it."""
        parent, _, name = norm.rpartition(".")
        setattr(self.network.get_submodule(parent), name, nn.Identity())
        copied = self.network.get_submodule(layer)
        if copied.bias is None:
            weight: Any = copied.weight
            copied.bias = nn.Parameter(weight.new_zeros(len(weight)), requires_grad=False)
        return copied

    @torch.no_grad()
    def refreshed(self) -> nn.Module:
        """The copy, with the weights that the network has now."""
        for tensor, original in self._others:
            tensor.copy_(original)
        for layer, norm, copied in self._pairs:
            _fold(layer, norm, copied)
        return self.network


def folded(model: nn.Module, example: Tensor) -> Folded | None:
    """A folded copy of the network; None if it has nothing to fold, or if folding would change what it says."""
    with torch.inference_mode(False), torch.no_grad():  # the copy outlives the evaluation that may have asked first
        pairs = _pairs(model, example)
        return Folded(model, pairs) if pairs and _is_proved(model, pairs, example) else None


def _pairs(model: nn.Module, example: Tensor) -> list[Pair]:
    """Layers and norms that see each other directly and once."""
    names = {module: name for name, module in model.named_modules()}
    made, found, calls = list[tuple[Tensor, str]](), list[Pair](), Counter[str]()

    def note(module: nn.Module, given: tuple[Any, ...], output: Any) -> None:
        calls[names[module]] += 1
        if type(module) in LAYERS:
            made.append((output, names[module]))
        elif isinstance(module, BatchNorm) and module.running_mean is not None:
            found.extend((name, names[module]) for tensor, name in made if tensor is given[0])

    with _watched(model, note):
        model(example)
    return [pair for pair in found if calls[pair[0]] == calls[pair[1]] == 1]


@contextmanager
def _watched(model: nn.Module, note: Any) -> Iterator[None]:
    """Inside the block the network is in eval mode, and every call of a module is noted."""
    was_training = model.training
    handles = [module.register_forward_hook(note) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
        for handle in handles:
            handle.remove()


def _is_proved(model: nn.Module, pairs: Sequence[Pair], example: Tensor) -> bool:
    random = torch.Generator().manual_seed(0)
    trial = deepcopy(model).double().eval()
    for norm in batch_norms(trial):
        for tensor in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
            if tensor is not None:
                tensor.copy_(torch.rand(tensor.shape, generator=random, dtype=torch.float64) + 0.5)
    try:
        plain, other = trial(example.double()), Folded(trial, pairs).refreshed()(example.double())
    except RuntimeError:  # it computes in one precision only
        return False
    return bool((plain - other).abs().max() <= TOLERANCE * plain.abs().max())


def _fold(layer: Any, norm: Any, into: Any) -> None:
    weight, bias, mean, var = layer.weight, layer.bias, norm.running_mean, norm.running_var
    scale = (var + norm.eps).rsqrt() if norm.weight is None else norm.weight * (var + norm.eps).rsqrt()
    shift = -mean if bias is None else bias - mean
    into.weight.copy_(weight * scale.view(-1, *[1] * (weight.ndim - 1)))
    into.bias.copy_(shift * scale if norm.bias is None else shift * scale + norm.bias)
