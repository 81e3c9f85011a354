"""A network's twin for several clients at once: the same modules, each of which works on all clients' channels.

Activations have the clients one after another in their second dimension, batch x (clients * channels) x ..., so what
the network's own code does between its layers (residual additions, ReLU, means over pixels, ``flatten(1)``) is as right
for all clients as it is for one. Convolutions and norms become grouped ones, linear layers one batched product.
Parameters have the clients one after another in their first dimension. models/twin_proof.py tells of which networks
this is true.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cached_property

import torch
from torch import Tensor, nn

from fedfuse.core.weights import Layout
from fedfuse.models.classifier import Classifier


class NoTwinError(Exception):
    """A network has something that cannot be stacked; the text says what."""


class StackedLinear(nn.Module):
    """A linear layer for each client."""

    def __init__(self, layer: nn.Linear, clients: int) -> None:
        super().__init__()
        self.clients = clients
        self.weight = _empty(clients, layer.out_features, layer.in_features)
        self.bias = None if layer.bias is None else _empty(clients, 1, layer.out_features)

    def forward(self, x: Tensor) -> Tensor:
        """Copies lie one client after another, so that no sum's order depends on a client's place in memory."""
        own = x.unflatten(1, (self.clients, -1)).transpose(0, 1).contiguous()
        weight = self.weight.transpose(1, 2)
        out = torch.bmm(own, weight) if self.bias is None else torch.baddbmm(self.bias, own, weight)
        if out.requires_grad:
            out.register_hook(Tensor.contiguous)
        return out.transpose(0, 1).flatten(1)


def _convolution(layer: nn.Conv2d, clients: int) -> nn.Module:
    """The layer itself, and more of it: kernels, strides and paddings stay."""
    stacked, bias = copy.copy(layer), layer.bias is not None
    stacked._parameters = dict(layer._parameters)
    for number in ("in_channels", "out_channels", "groups"):
        setattr(stacked, number, clients * getattr(layer, number))
    stacked.weight = _empty(clients * len(layer.weight), *layer.weight.shape[1:])
    if bias:
        stacked.bias = _empty(stacked.out_channels)
    return stacked


def _group_norm(layer: nn.GroupNorm, clients: int) -> nn.Module:
    groups, channels = clients * layer.num_groups, clients * layer.num_channels
    return nn.GroupNorm(groups, channels, layer.eps, layer.affine, device="meta")


def _layer_norm(layer: nn.LayerNorm, clients: int) -> nn.Module:
    """Of feature vectors, where a client's are one group; of anything else it would be wrong, and is found to be."""
    size = clients * layer.normalized_shape[-1]
    return nn.GroupNorm(clients, size, layer.eps, layer.elementwise_affine, device="meta")


_LAYERS: dict[type[nn.Module], Callable[..., nn.Module]] = {
    nn.Linear: StackedLinear,
    nn.Conv2d: _convolution,
    nn.GroupNorm: _group_norm,
    nn.LayerNorm: _layer_norm,
}
"""Layers with parameters, by their exact type. A network with others has no twin: BatchNorm's statistics, for instance,
would be of examples that only fill up a batch."""


class Twin:
    """A network for ``size`` clients. What it holds are zeros, until something is written."""

    def __init__(
        self, network: Classifier, size: int, device: torch.device, dtype: torch.dtype = torch.float32
    ) -> None:
        self.size = size
        self.layout = Layout.of(network)
        self._like = network
        stacked = _stacked(copy.deepcopy(network), size, {})
        assert isinstance(stacked, Classifier), "a Classifier is no layer"
        if [name for name, _ in stacked.named_parameters()] != [name for name, _ in self.layout.parameters]:
            raise NoTwinError("it shares parameters between layers")
        _fill(stacked, device, dtype)
        self.network = stacked.to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
        self.parameters = list(self.network.parameters())
        self._values = [self._by_client(p.detach(), name) for name, p in self.network.named_parameters()]

    def _by_client(self, tensor: Tensor, name: str) -> Tensor:
        return tensor.view(self.size, *self.layout.by_name[name].shape)

    @torch.no_grad()
    def write(self, rows: Tensor) -> None:
        """Client k's weights are row k."""
        pieces = rows.split([entry.size for entry in self.layout.entries], dim=1)
        for own, piece in zip(self._values, pieces, strict=True):
            own.copy_(piece.view(own.shape))

    @torch.no_grad()
    def read(self) -> Tensor:
        """Row k is client k's weights."""
        return _joined(self._values).cpu()

    def by_client(self, tensors: Sequence[Tensor]) -> Tensor:
        """Tensors like the parameters, as rows like those of the weights."""
        names = self.layout.by_name
        return _joined([self._by_client(tensor, name) for tensor, name in zip(tensors, names, strict=True)])

    def stacked(self, inputs: Tensor) -> Tensor:
        """Inputs of batch x clients x ... as the network reads them."""
        flat = inputs.flatten(1, 2)
        return flat.contiguous(memory_format=torch.channels_last) if flat.ndim == 4 else flat

    def apart(self, outputs: Tensor) -> Tensor:
        """Features or logits as clients x batch x ..., one client's after another in memory."""
        apart: Tensor = outputs.unflatten(1, (self.size, -1))
        return apart.transpose(0, 1).contiguous()

    @cached_property
    def places(self) -> list[Classifier]:
        """The plain network once for each client, on the memory of the stack: what is done to it, is done there."""
        return [self._place(client) for client in range(self.size)]

    def _place(self, client: int) -> Classifier:
        network = copy.deepcopy(self._like).train()
        for (name, _), values in zip(list(network.named_parameters()), self._values, strict=True):
            path, _, own = name.rpartition(".")
            setattr(network.get_submodule(path), own, nn.Parameter(values[client]))
        return network

    def share_gradients(self) -> None:
        """Let the clients' networks have their parts of the stack's gradients, which are zero now."""
        for parameter in self.parameters:
            parameter.grad = torch.zeros_like(parameter)
        gradients = [self._by_client(p.grad, name) for name, p in self.network.named_parameters() if p.grad is not None]
        for client, network in enumerate(self.places):
            for parameter, gradient in zip(network.parameters(), gradients, strict=True):
                parameter.grad = gradient[client]

    def clear_gradients(self) -> None:
        """Gradients that are shared stay where they are."""
        torch._foreach_zero_([p.grad for p in self.parameters])


def _stacked(module: nn.Module, clients: int, known: dict[nn.Module, nn.Module]) -> nn.Module:
    """The module itself with its layers replaced, or what replaces it; one that occurs twice has one twin."""
    if module not in known:
        known[module] = _replaced(module, clients, known)
    return known[module]


def _replaced(module: nn.Module, clients: int, known: dict[nn.Module, nn.Module]) -> nn.Module:
    if type(module) in _LAYERS:
        return _LAYERS[type(module)](module, clients)
    if module._parameters or module._buffers:
        raise NoTwinError(f"it has a {type(module).__name__}")
    for name, child in list(module._modules.items()):  # named_children leaves out one that occurs twice
        if child is not None:
            setattr(module, name, _stacked(child, clients, known))
    return module


def _fill(network: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
    """Zeros in the place of parameters that have a shape only (``to_empty`` would import torch's symbolic shapes)."""
    for layer in network.modules():
        for name, shape in [(name, p.shape) for name, p in layer._parameters.items() if p is not None]:
            setattr(layer, name, nn.Parameter(torch.zeros(shape, device=device, dtype=dtype)))


def _joined(values: Sequence[Tensor]) -> Tensor:
    return torch.cat([own.reshape(len(own), -1) for own in values], dim=1)


def _empty(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(*shape, device="meta"))
