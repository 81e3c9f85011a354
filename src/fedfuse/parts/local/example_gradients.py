"""The sum of the clipped gradients of single examples, which no example can move by more than the clip norm.

Each example is shown to the network by itself, so that nothing that a network does with its batch mixes them: all at a
time by torch.func's vmap of grad, or one after another where a network's code looks at the numbers that it computes
with (encoders of transformers do), which vmap cannot follow. An example whose gradient is not finite adds nothing: no
bound would hold for it.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from fedfuse.core.randomness import Key
from fedfuse.models import Classifier
from fedfuse.parts.local.objective import Batch, Hooks

AT_ONCE = 2**22
"""Numbers of single gradients that are in memory at a time: more would not stay in a processor's cache."""

Named = dict[str, Tensor]


class ExampleGradients:
    """Of one network with one client's hooks; parameters may change from call to call."""

    def __init__(self, model: Classifier, hooks: Hooks, norm: float) -> None:
        self.model, self.network, self.hooks, self.norm = model, _Both(model), hooks, norm
        self.parameters = {f"model.{name}": p for name, p in model.named_parameters() if p.requires_grad}
        self.chunk = max(1, AT_ONCE // max(1, sum(p.numel() for p in self.parameters.values())))
        self._all_at_a_time = vmap(grad(self._of_one), in_dims=(None, 0, 0), randomness="different")

    def clipped_sum(self, inputs: Tensor, labels: Tensor) -> list[Tensor]:
        """For each parameter that learns, over all examples of a batch, which may have none."""
        total = [torch.zeros_like(parameter) for parameter in self.parameters.values()]
        now = {name: parameter.detach() for name, parameter in self.parameters.items()}
        for some, theirs in zip(inputs.split(self.chunk), labels.split(self.chunk), strict=True):
            if len(some):
                for whole, own in zip(total, self._clipped(self._each(now, some, theirs)), strict=True):
                    whole.add_(own)
        return total

    def _each(self, parameters: Named, inputs: Tensor, labels: Tensor) -> Named:
        """The gradients of all examples, a row each."""
        with sdpa_kernel(SDPBackend.MATH):  # the only kind of attention that vmap has a rule for
            if self._can_be_followed(parameters, inputs[:1], labels[:1]):
                rows_of_all: Named = self._all_at_a_time(parameters, inputs, labels)
                return rows_of_all
        rows = [grad(self._of_one)(parameters, *one) for one in zip(inputs, labels, strict=True)]
        return {name: torch.stack([row[name] for row in rows]) for name in parameters}

    def _can_be_followed(self, parameters: Named, inputs: Tensor, labels: Tensor) -> bool:
        """Whether vmap can; tried once, with random numbers apart, so that no result depends on who tried."""
        tried = _FOLLOWED.setdefault(self.model, {})
        if type(self.hooks) not in tried:
            try:
                with Key(0, ("trial",)).default_generator():
                    self._all_at_a_time(parameters, inputs, labels)
                tried[type(self.hooks)] = True
            except RuntimeError:  # if it was no fault of vmap, it comes up again
                tried[type(self.hooks)] = False
        return tried[type(self.hooks)]

    def _of_one(self, parameters: Named, inputs: Tensor, labels: Tensor) -> Tensor:
        """Its loss, with what the hooks add to it."""
        inputs, labels = inputs.unsqueeze(0), labels.unsqueeze(0)
        features, logits = functional_call(self.network, parameters, (inputs,))
        loss = F.cross_entropy(logits, labels)
        penalty = self.hooks.penalty(Batch(inputs, labels), features, logits)
        return loss if penalty is None else loss + penalty

    def _clipped(self, gradients: Named) -> list[Tensor]:
        squares = torch.stack([own.flatten(1).square().sum(dim=1) for own in gradients.values()])
        lengths = squares.sum(dim=0).sqrt()
        sound = lengths.isfinite()
        factors = torch.where(sound, (self.norm / lengths.clamp_min(1e-30)).clamp_max(1.0), 0.0)
        if not bool(sound.all()):
            gradients = {name: torch.nan_to_num(own, 0.0, 0.0, 0.0) for name, own in gradients.items()}
        return [torch.einsum("b,b...->...", factors, own) for own in gradients.values()]


_FOLLOWED: WeakKeyDictionary[nn.Module, dict[type[Hooks], bool]] = WeakKeyDictionary()
"""Of networks that were tried, whether vmap can follow their code and that of a kind of hooks."""


class _Both(nn.Module):
    """A classifier that gives its features with its logits."""

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        features = self.model.features(inputs)
        return features, self.model.classifier(features)
