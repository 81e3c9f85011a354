"""One-bit clients with error feedback, FedDF's low-precision study (Lin et al., 2020, Table 4).

After every optimiser step, and once before the first:   w <- w + e;   q = Q(w);   e <- w - q;   w <- q

The error memory e belongs to the client and stays with it between rounds. (In the released code it belonged to the
worker process and leaked from client to client.)
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from torch import Tensor

from fedfuse.core.messages import Tensors
from fedfuse.parts.binary import BinaryPart, binary_parameters, quantise
from fedfuse.parts.context import ClientContext
from fedfuse.parts.local.objective import Hooks, Objective


class OneBit(BinaryPart, Objective):
    """Cross-entropy on weights that have one bit each (two values per filter), norm layers excepted."""

    kind: Literal["one_bit"] = "one_bit"
    stacks: ClassVar[bool] = True
    separates_examples: ClassVar[bool] = True
    remembers_weights: ClassVar[bool] = True

    def begin(self, client: ClientContext) -> Hooks:
        if not self.binarises(client.task.prototype):
            return Hooks()
        hooks = _OneBitHooks(client)
        hooks.on_step_end()
        return hooks


class _OneBitHooks(Hooks):
    def __init__(self, client: ClientContext) -> None:
        self.parameters = dict(binary_parameters(client.model))
        self.errors = {name: self._remembered(client.state, name) for name in self.parameters}

    def _remembered(self, state: Tensors, name: str) -> Tensor:
        parameter = self.parameters[name]
        return state[name].to(parameter.device) if name in state else torch.zeros_like(parameter)

    @torch.no_grad()
    def on_step_end(self) -> None:
        for name, parameter in self.parameters.items():
            wanted = parameter + self.errors[name]
            quantised = quantise(wanted)
            self.errors[name] = wanted - quantised
            parameter.copy_(quantised)

    def state(self) -> Tensors:
        return {name: error.detach().cpu() for name, error in self.errors.items()}
