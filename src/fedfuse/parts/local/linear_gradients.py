"""The same sum for networks of nothing but linear layers, in about the time of a plain step.

The gradient of example i in a linear layer is the product of what went in and of what comes back, delta_i a_i^T, whose
length is |delta_i| |a_i|: no gradient of a single example has to be written out. (Goodfellow, Efficient Per-Example
Gradient Computations, 2015.) It takes a batch at a time, so that it is right only where layers are known to treat every
row by itself; of all other networks, ``example_gradients.py`` shows each example to the network alone.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedfuse.models import Classifier
from fedfuse.models.classifier import LayeredClassifier
from fedfuse.parts.local.objective import Batch, Hooks

BY_ROW = (nn.Linear, nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.LeakyReLU, nn.Flatten, nn.Identity, nn.Dropout)


def is_linear(model: Classifier) -> bool:
    """Whether it is one of ours in which only linear layers, one after another, have parameters."""
    if type(model) is not LayeredClassifier or type(model.layers) is not nn.Sequential:
        return False
    layers = [*model.layers, model.classifier]
    hooked = any(layer._forward_hooks or layer._forward_pre_hooks for layer in model.modules())
    return len(set(layers)) == len(layers) and all(type(layer) in BY_ROW for layer in layers) and not hooked


class LinearGradients:
    """Of one network with one client's hooks; parameters may change from call to call."""

    def __init__(self, model: Classifier, hooks: Hooks, norm: float) -> None:
        self.model, self.hooks, self.norm = model, hooks, norm
        self.layers = [
            layer for layer in model.modules() if isinstance(layer, nn.Linear) and layer.weight.requires_grad
        ]
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}

    def clipped_sum(self, inputs: Tensor, labels: Tensor) -> list[Tensor]:
        """For each parameter that learns, over all examples of a batch, which may have none."""
        if not len(inputs):
            return [torch.zeros_like(parameter) for parameter in self.parameters.values()]
        went_in, came_back = self._passes(inputs, labels)
        squares = [
            back.square().sum(dim=1) * (into.square().sum(dim=1) + (layer.bias is not None))
            for layer, into, back in zip(self.layers, went_in, came_back, strict=True)
        ]
        lengths = torch.stack(squares).sum(dim=0).sqrt()
        sound = lengths.isfinite()
        factors = torch.where(sound, (self.norm / lengths.clamp_min(1e-30)).clamp_max(1.0), 0.0)
        if not bool(sound.all()):
            went_in, came_back = ([_blank(rows, sound) for rows in both] for both in (went_in, came_back))
        return self._sums(went_in, [factors.unsqueeze(1) * back for back in came_back])

    def _passes(self, inputs: Tensor, labels: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """What goes into every layer, and what comes back to it of the examples' losses, a row for each example."""
        into: dict[nn.Module, Tensor] = {}
        out: dict[nn.Module, Tensor] = {}

        def note(layer: nn.Module, given: tuple[Tensor, ...], made: Tensor) -> None:
            into[layer], out[layer] = given[0].detach().float(), made

        handles = [layer.register_forward_hook(note) for layer in self.layers]
        try:
            features = self.model.features(inputs)
            logits = self.model.classifier(features)
        finally:
            for handle in handles:
                handle.remove()
        loss = F.cross_entropy(logits, labels)
        penalty = self.hooks.penalty(Batch(inputs, labels), features, logits)
        total = len(inputs) * (loss if penalty is None else loss + penalty)  # of a mean, the sum
        came_back = torch.autograd.grad(total, [out[layer] for layer in self.layers])
        return [into[layer] for layer in self.layers], [back.float() for back in came_back]

    def _sums(self, went_in: list[Tensor], came_back: list[Tensor]) -> list[Tensor]:
        """In the order of the parameters."""
        found: dict[int, Tensor] = {}
        for layer, into, back in zip(self.layers, went_in, came_back, strict=True):
            found[id(layer.weight)] = back.T @ into
            if layer.bias is not None:
                found[id(layer.bias)] = back.sum(dim=0)
        return [found[id(parameter)] for parameter in self.parameters.values()]


def _blank(rows: Tensor, sound: Tensor) -> Tensor:
    """Zeros for examples that are not sound."""
    return torch.where(sound.unsqueeze(1), rows, 0.0)
