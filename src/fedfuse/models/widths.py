"""Networks whose layers have other widths than their architecture's own, as matched averaging makes them."""

from __future__ import annotations

from torch import nn

from fedfuse.core.weights import Layout
from fedfuse.models.chain import chain
from fedfuse.models.classifier import Classifier, ProjectedClassifier


def fitted(model: Classifier, layout: Layout) -> Classifier:
    """The network itself, its linear layers and convolutions made as wide as ``layout`` says.

    Kernels, strides, paddings and biases stay; what a changed network holds are zeros, to be overwritten. Raises
    ConfigError for a network that is no chain, ValueError for a layout that widths alone cannot explain.
    """
    if Layout.of(model) == layout:
        return model
    links, shapes = chain(model), dict(layout.parameters)
    for link in links:
        _resize(model.get_submodule(link.name), shapes.get(link.weight, ()))
    if Layout.of(model) != layout or chain(model) != links:
        raise _foreign()
    model.feature_size = shapes["classifier.weight"][1]
    if isinstance(model, ProjectedClassifier):
        model.body.feature_size = shapes["head.0.weight"][1]
    return model


def _resize(layer: nn.Module, shape: tuple[int, ...]) -> None:
    assert isinstance(layer, nn.Linear | nn.Conv2d), "a chain has no others"
    if len(shape) != layer.weight.ndim or shape[2:] != layer.weight.shape[2:]:
        raise _foreign()
    layer.weight = nn.Parameter(layer.weight.new_zeros(shape))
    if layer.bias is not None:
        layer.bias = nn.Parameter(layer.bias.new_zeros(shape[0]))
    if isinstance(layer, nn.Linear):
        layer.out_features, layer.in_features = shape
    else:
        layer.out_channels, layer.in_channels = shape[:2]


def _foreign() -> ValueError:
    return ValueError("the weights are not those of a wider or narrower network of this architecture")
