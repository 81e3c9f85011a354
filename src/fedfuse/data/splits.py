"""Who may see which examples: training, validation and public data of the server, and test."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.hashes import sha256_of_all
from fedfuse.core.randomness import Key
from fedfuse.data.dataset import Dataset, Examples, Selection
from fedfuse.data.settings import DataSettings, Official

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class SplitIndices:
    """Positions in the dataset's training examples, sorted; none for splits that are official."""

    train: Indices
    validation: Indices | None
    public: Indices | None
    test: Indices | None


@dataclass(frozen=True)
class Splits:
    """Disjoint parts that together are the whole dataset. What the clients have is nearly all of it and not copied."""

    train: Selection
    validation: Examples
    public: Examples
    test: Examples
    indices: SplitIndices

    def sha256(self) -> str:
        """Of all examples, whoever sees them."""
        parts = (self.train, self.validation, self.public, self.test)
        return sha256_of_all(chain.from_iterable(chain(part.blocks(), [part.labels]) for part in parts))


def split(dataset: Dataset, settings: DataSettings, key: Key) -> Splits:
    """Divide; the test examples depend on the key and ``test`` alone, not on the other sizes."""
    indices = split_indices(len(dataset.train), dataset.test is not None, settings, key)
    return Splits(
        Selection(dataset.train, torch.from_numpy(indices.train)),
        _official_or_part(dataset, dataset.validation, indices.validation),
        _official_or_part(dataset, dataset.public, indices.public),
        _official_or_part(dataset, dataset.test, indices.test),
        indices,
    )


def split_indices(examples: int, has_test: bool, settings: DataSettings, key: Key) -> SplitIndices:
    """The positions of each part."""
    test_size = 0 if has_test else _size("test", settings.test, examples)
    if not has_test and test_size == 0:
        raise ConfigError("data.test is 0, but the dataset has no test split; give a share such as 0.2 or a count")
    training = examples - test_size
    validation = _size("validation", settings.validation, training)
    public = _size("public", settings.public, training)
    if validation + public >= training:
        raise ConfigError(
            f"data.validation = {settings.validation} and data.public = {settings.public} take {validation + public} "
            f"of {training} training examples; at least one must be left for the clients"
        )
    order = _order(examples, test_size + validation, settings, key)
    bounds = np.cumsum([test_size, validation, public])
    test_part, validation_part, public_part, train_part = (np.sort(part) for part in np.split(order, bounds))
    own_validation = None if settings.validation == "official" else validation_part
    own_public = None if settings.public == "official" else public_part
    return SplitIndices(train_part, own_validation, own_public, None if has_test else test_part)


def training_rows(examples: int, has_test: bool, settings: DataSettings, key: Key) -> Indices:
    """The positions of all examples that are no test examples: the clients', and the server's own."""
    test = split_indices(examples, has_test, settings, key).test
    return np.setdiff1d(np.arange(examples), test) if test is not None else np.arange(examples)


def _order(examples: int, at_the_end: int, settings: DataSettings, key: Key) -> Indices:
    """Positions as they are dealt: to test, validation and public, the rest to the clients."""
    if settings.split == "random":
        return key.numpy().permutation(examples)
    backwards, forwards = np.arange(examples)[::-1], np.arange(examples)
    return np.concatenate([backwards[:at_the_end], forwards[: examples - at_the_end]])


def _size(key: str, wanted: int | float | Official, examples: int) -> int:
    if wanted == "official":
        return 0
    size = wanted if isinstance(wanted, int) else round(wanted * examples)
    if wanted and not 1 <= size < examples:
        raise ConfigError(
            f"data.{key} = {wanted} asks for {size} of {examples} examples; it must take from 1 to {examples - 1}"
        )
    return size


def _official_or_part(dataset: Dataset, official: Examples | None, where: Indices | None) -> Examples:
    if where is not None:
        return _part(dataset, where)
    if official is None:
        raise DataError("data.validation or data.public is official, but no such examples were given; give a share")
    return official


def _part(dataset: Dataset, where: Indices) -> Examples:
    return dataset.train.select(torch.from_numpy(where))
