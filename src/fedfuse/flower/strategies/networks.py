"""The networks of a strategy by name, and all of them as the one record of arrays that Flower's loop carries."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Literal

from flwr.app import ArrayRecord

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.flower.reading import LONGEST_WORD, tensor_of
from fedfuse.flower.strategies.network import Model, Network, classes_of, classifier_of, new_network
from fedfuse.models import Architecture, Classifier
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.compute import Compute
from fedfuse.runtime.source import Source

ONLY = "model"
"""The name of a network that is the only one; its arrays have no prefix."""


class Given(Architecture):
    """A network that Python hands over, for as long as this process lives."""

    arch: Literal["given"] = "given"
    make: Callable[[], Classifier]

    def build(self, input_shape: tuple[int, ...], classes: int) -> Classifier:
        return self.make()


class Networks(Mapping[str, Network]):
    """All networks of a strategy by name."""

    def __init__(self, model: Model | Mapping[str, Model], source: Source | None, compute: Compute, key: Key) -> None:
        self.are_several = isinstance(model, Mapping)
        models = dict(model) if isinstance(model, Mapping) else {ONLY: model}
        if not models or not all(map(_is_name, models)):
            raise ConfigError(
                f"model must be a network, or networks by names of up to {LONGEST_WORD} characters without '/'"
            )
        made = {name: self._made(name, one, source, compute, key) for name, one in models.items()}
        self._networks = {name: network for name, (network, _) in made.items()}
        classes = {name: number for name, (_, number) in made.items() if number is not None}
        if len(set(classes.values())) > 1:
            counts = ", ".join(f"'{name}' {number}" for name, number in classes.items())
            raise ConfigError(f"the models must know the same classes, but their numbers differ: {counts}")
        makers = {name: Given(make=partial(copy.deepcopy, net.classifier)) for name, net in self.items()}
        shape = (1,) if source is None else tuple(source.raw.shape[1:])
        self.bank = ModelBank(makers, shape, max(classes.values(), default=1), compute)

    def _made(
        self, name: str, model: Model, source: Source | None, compute: Compute, key: Key
    ) -> tuple[Network, int | None]:
        """A network, and how many classes it knows, if that can be told."""
        called = self.called(name)
        with key.child("network", name).default_generator():
            own = compute.place(new_network(called, model))
            classifier = classifier_of(own)
            classes = classes_of(called, classifier, source)
        return Network(called, own, classifier), classes

    def called(self, name: str) -> str:
        """A network as sentences call it."""
        return f"model '{name}'" if self.are_several else "the model"

    def record(self, weights: Mapping[str, Weights]) -> ArrayRecord:
        """All networks as the arrays that Flower's loop carries."""
        return ArrayRecord(
            {
                f"{self.prefix(name)}{array}": value
                for name, network in self.items()
                for array, value in network.record(weights[name]).items()
            }
        )

    def part(self, arrays: ArrayRecord, name: str) -> ArrayRecord:
        """Of these arrays, the ones of one network, under its own names."""
        prefix = self.prefix(name)
        return ArrayRecord({a.removeprefix(prefix): value for a, value in arrays.items() if a.startswith(prefix)})

    def prefix(self, name: str) -> str:
        return f"{name}/" if self.are_several else ""

    def read(self, arrays: ArrayRecord) -> dict[str, Weights]:
        """The weights of all networks; a DataError says which arrays are none of them."""
        read, known = {}, 0
        for name, network in self.items():
            tensors = {array: tensor_of(value) for array, value in self.part(arrays, name).items()}
            try:
                network.check(tensors)
            except DataError as error:
                raise DataError(f"the arrays to begin with do not fit {self.called(name)}: {error}") from None
            read[name], known = network.weights(tensors).here, known + len(tensors)
        if known < len(arrays):
            raise DataError("the arrays to begin with have some that belong to none of the models")
        return read

    def __getitem__(self, name: str) -> Network:
        return self._networks[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._networks)

    def __len__(self) -> int:
        return len(self._networks)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_WORD and value.isprintable() and "/" not in value
