"""A network as a chain of weight layers: the order in which methods that work layer by layer go through it.

A chain has linear layers and convolutions one after the other, and nothing between them that mixes their neurons or
has numbers of its own: activations, pooling, dropout, one Flatten before the first linear layer. The order is read off
the modules, so a network whose ``features`` do more than call them in a row is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from fedfuse.core.errors import ConfigError
from fedfuse.models.classifier import Classifier, LayeredClassifier, ProjectedClassifier

_ORDER: dict[type[nn.Module], tuple[str, ...]] = {
    LayeredClassifier: ("layers", "classifier"),
    ProjectedClassifier: ("body", "head", "classifier"),
}
_BETWEEN: tuple[type[nn.Module], ...] = (
    *(nn.Identity, nn.Flatten, nn.Dropout, nn.Dropout2d),
    *(nn.ReLU, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid),
    *(nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveMaxPool2d, nn.AdaptiveAvgPool2d),
)


@dataclass(frozen=True)
class Link:
    """One weight layer: where it is, and how it reads the layer before it.

    Neuron (or channel) i of the layer before reaches the inputs ``i * block`` to ``(i + 1) * block - 1`` of this one:
    one input, or every pixel of a channel where a Flatten lies between.
    """

    name: str
    kind: Literal["linear", "conv2d"]
    weight: str
    bias: str | None
    block: int

    @property
    def names(self) -> tuple[str, ...]:
        return (self.weight,) if self.bias is None else (self.weight, self.bias)


def chain(model: Classifier) -> tuple[Link, ...]:
    """The weight layers from the input to the logits; a ConfigError says why the network is no chain."""
    links: list[Link] = []
    width, flattened = 0, False
    for name, layer in _in_order("", model):
        if isinstance(layer, nn.Linear | nn.Conv2d):
            links.append(_link(name, layer, links[-1] if links else None, width, flattened))
            width, flattened = layer.weight.shape[0], False
        elif type(layer) not in _BETWEEN:
            raise _refusal(f"{name} is a {type(layer).__name__}")
        flattened |= type(layer) is nn.Flatten
    return tuple(links)


def carry_over(weight: Tensor, assignment: Tensor, width: int, block: int) -> Tensor:
    """A client's weight of the next layer, its inputs in the order of the ``width`` global neurons before it.

    ``block`` inputs belong to each neuron; those of a neuron that the client has not are zero.
    """
    parts = weight.reshape(len(weight), -1, block, *weight.shape[2:])
    carried = parts.new_zeros(len(parts), width, *parts.shape[2:])
    carried[:, assignment] = parts
    return carried.reshape(len(weight), -1, *weight.shape[2:])


def take_back(weight: Tensor, assignment: Tensor, block: int) -> Tensor:
    """What ``carry_over`` made the given weight of: of its inputs, those of these neurons, in their order."""
    parts = weight.reshape(len(weight), -1, block, *weight.shape[2:])
    return parts[:, assignment].reshape(len(weight), -1, *weight.shape[2:])


def _in_order(name: str, module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The layers in the order in which an input meets them, with their names."""
    if type(module) is nn.Sequential:
        inner = tuple(child for child, _ in module.named_children())
    elif type(module) in _ORDER:
        inner = _ORDER[type(module)]
    elif isinstance(module, Classifier):
        raise _refusal("its layers do not simply follow each other, as in networks with shortcuts")
    else:
        yield name, module
        return
    for child in inner:
        yield from _in_order(f"{name}.{child}" if name else child, module.get_submodule(child))


def _link(name: str, layer: nn.Linear | nn.Conv2d, before: Link | None, width: int, flattened: bool) -> Link:
    if isinstance(layer, nn.Conv2d) and layer.groups != 1:
        raise _refusal(f"{name} is a convolution in {layer.groups} groups")
    kind: Literal["linear", "conv2d"] = "linear" if isinstance(layer, nn.Linear) else "conv2d"
    inputs = layer.weight.shape[1]
    block = inputs // width if before and flattened else 1
    if before and (width * block != inputs or not (kind == before.kind or (kind == "linear" and flattened))):
        raise _refusal(f"the {inputs} inputs of {name} are not the {width} neurons of {before.name} in their order")
    return Link(name, kind, f"{name}.weight", None if layer.bias is None else f"{name}.bias", block)


def _refusal(reason: str) -> ConfigError:
    return ConfigError(f"the network is no chain of linear layers and convolutions: {reason}")
