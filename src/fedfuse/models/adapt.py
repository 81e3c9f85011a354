"""Any network as a Classifier: its last layer is taken out, so that what it returns then are the features.

Where the network has a ``features`` method and a ``classifier`` module, these are used. Otherwise the classifier is the
linear layer with one output per class that ran last. Either cut is kept only if, on a probe batch in training and in
evaluation mode, ``classifier(features(x))`` equals what the network returned before, bit for bit.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError
from fedfuse.core.imports import first_line
from fedfuse.core.randomness import Key
from fedfuse.core.text import TextShape
from fedfuse.models.classifier import Classifier

PROBE = 2
"""Examples in the probe batch: the fewest that BatchNorm can normalise."""
_NETWORK = "network"


class AdaptedClassifier(Classifier):
    """``network`` without the layer at ``place`` (an address below this module), which becomes ``classifier``."""

    def __init__(self, network: nn.Module, place: str, has_features: bool) -> None:
        super().__init__()
        self.network = network
        self.has_features = has_features
        self.place = place.removeprefix(_NETWORK).removeprefix(".")
        self.classifier = self.get_submodule(place)
        parent, _, name = place.rpartition(".")
        setattr(self.get_submodule(parent), name, nn.Identity())

    def features(self, x: Tensor) -> Tensor:
        h: Tensor = self.network.features(x) if self.has_features else logits_of(self.network(x))  # type: ignore[operator]
        return h

    def own_state(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """These weights, with all else that ``load_state_dict`` of the network as it was written asks for."""
        whole = {**self.state_dict(), **weights}
        return {self._own_name(name): tensor.cpu() for name, tensor in whole.items()}

    def adapted_state(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The way back."""
        names = {self._own_name(name): name for name in (*self.state_dict(), *dict(self.named_buffers()))}
        return {names.get(name, name): tensor for name, tensor in tensors.items()}

    def _own_name(self, name: str) -> str:
        where, _, rest = name.partition(".")
        return rest if where == _NETWORK else ".".join(filter(None, (self.place, rest)))


def adapt(network: nn.Module, input_shape: tuple[int, ...], classes: int, name: str) -> Classifier:
    """A classifier that computes what ``network`` does; ConfigErrors call it ``name``.

    The network itself is left alone: it may be one that the caller keeps and gives away again.
    """
    network = copy.deepcopy(network).eval()
    _check_types(network, name)
    probe = probe_batch(input_shape)
    places = [(f"{_NETWORK}.classifier", True)] if _has_parts(network) else []
    places += [(place, False) for place in _last_linear(network, probe, classes, name)]
    _check_lazy(network, name)
    expected = {training: _checked_answer(network, probe, training, classes, name) for training in (False, True)}
    if isinstance(network, Classifier):
        _check_learns(network, probe, name)
        return network.train()
    for place, has_features in places:
        adapted = AdaptedClassifier(copy.deepcopy(network), place, has_features)
        size = _feature_size(adapted, probe, expected)
        if size is not None:
            adapted.feature_size = size
            _check_learns(adapted, probe, name)
            return adapted.train()
    raise ConfigError(
        f"{name} cannot be cut into features and a classifier: it needs a linear layer with {classes} outputs whose "
        "result is what it returns, or a method 'features' and a module 'classifier' with forward(x) = "
        "classifier(features(x))"
    )


def probe_batch(input_shape: tuple[int, ...]) -> Tensor:
    """A few random inputs of this shape, always the same."""
    random = Key(0).torch()
    if isinstance(input_shape, TextShape):
        return torch.randint(1, input_shape.vocabulary, (PROBE, input_shape.length), generator=random)
    return torch.rand(PROBE, *input_shape, generator=random)


def logits_of(output: Any) -> Any:
    """The output itself, or its ``logits`` where a network returns an object that has them."""
    return getattr(output, "logits", output)


def _has_parts(network: nn.Module) -> bool:
    return callable(getattr(network, "features", None)) and isinstance(getattr(network, "classifier", None), nn.Module)


def _last_linear(network: nn.Module, probe: Tensor, classes: int, name: str) -> list[str]:
    """The place of the linear layer that ran last among those with one output per class, if there is any."""
    ran: list[str] = []
    hooks = [
        layer.register_forward_hook(lambda *_, place=place: ran.append(place))
        for place, layer in network.named_modules(prefix=_NETWORK)
        if isinstance(layer, nn.Linear) and layer.out_features == classes
    ]
    try:
        _answer(network, probe, name)
    finally:
        for hook in hooks:
            hook.remove()
    return ran[-1:]


@torch.no_grad()
def _answer(network: nn.Module, probe: Tensor, name: str) -> Any:
    try:
        return logits_of(network(probe))
    except Exception as error:
        mode = "training" if network.training else "evaluation"
        shape = tuple(probe.shape)
        raise ConfigError(f"{name} failed on a batch of shape {shape} in {mode} mode: {first_line(error)}") from error


def _checked_answer(network: nn.Module, probe: Tensor, training: bool, classes: int, name: str) -> Tensor:
    """The network's logits in one mode. A copy is asked, because training mode moves BatchNorm statistics."""
    asked = copy.deepcopy(network).train(training)
    with _same_dropout():
        logits = _answer(asked, probe, name)
    if not isinstance(logits, Tensor):
        raise ConfigError(
            f"{name} returns a value of type {type(logits).__name__}, but should return a tensor of logits, "
            "or an object with one as its 'logits'"
        )
    if logits.shape != (PROBE, classes):
        raise ConfigError(
            f"{name} returns numbers of shape {tuple(logits.shape)} for {PROBE} examples, but should return one logit "
            f"per class, {(PROBE, classes)}"
        )
    _check_counters(network, asked, name)
    return logits


def _feature_size(adapted: AdaptedClassifier, probe: Tensor, expected: dict[bool, Tensor]) -> int | None:
    """How many features there are, or None if the cut changes what the network computes."""
    size = None
    for training, logits in expected.items():
        asked = copy.deepcopy(adapted).train(training)
        try:
            with torch.no_grad(), _same_dropout():
                features = asked.features(probe)
                same = torch.equal(asked.classifier(features), logits)
        except Exception:  # a foreign network may fail in any way when it is used otherwise than it was written for
            return None
        if not same or features.ndim != 2:
            return None
        size = features.shape[1]
    return size


def _check_learns(model: Classifier, probe: Tensor, name: str) -> None:
    """What wants to be trained and gets no gradient would stay as it is, and nobody would know why."""
    asked = copy.deepcopy(model).train()
    trained = dict(asked.named_parameters())
    trained = {where: own for where, own in trained.items() if own.requires_grad}
    if not trained:
        raise ConfigError(f"{name} has nothing to train: requires_grad is False for all of its parameters")
    below = [own for where, own in trained.items() if not where.startswith("classifier.")]
    with torch.enable_grad(), _same_dropout():
        said = asked.classifier(asked.features(probe)).sum()
    found = torch.autograd.grad(said, below, allow_unused=True) if below and said.requires_grad else ()
    if below and all(gradient is None for gradient in found):
        raise ConfigError(
            f"{name} gets no gradient below its classifier: forward() ends with detach() or runs under no_grad(); "
            "remove that, or set requires_grad to False for all that shall stay as it is"
        )


def _same_dropout() -> Any:
    return Key(0, ("probe",)).default_generator()


def _check_types(network: nn.Module, name: str) -> None:
    for where, tensor in (*network.named_parameters(), *network.named_buffers()):
        if tensor.is_floating_point() and tensor.dtype != torch.float32:
            raise ConfigError(
                f"{name} has '{where}' of type {tensor.dtype}, but should be float32; call .float() on it"
            )


def _check_lazy(network: nn.Module, name: str) -> None:
    for where, parameter in network.named_parameters():
        if nn.parameter.is_lazy(parameter):
            raise ConfigError(f"{name} has a lazy parameter '{where}' that its forward pass does not reach; remove it")


def _check_counters(before: nn.Module, after: nn.Module, name: str) -> None:
    """Integer buffers do not travel, so they may not change; BatchNorm's own counters are reset for every client."""
    for (where, old), (_, new) in zip(before.named_buffers(), after.named_buffers(), strict=True):
        is_reset = where.endswith("num_batches_tracked")
        if not old.is_floating_point() and not is_reset and not torch.equal(old, new):
            raise ConfigError(
                f"{name} changes its integer buffer '{where}' in training, which clients do not exchange; "
                "make it a floating one"
            )
