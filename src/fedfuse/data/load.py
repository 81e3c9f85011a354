"""From the ``data`` section of an experiment to a dataset in memory."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import torch

from fedfuse.catalogue.card import Card, Normalisation
from fedfuse.catalogue.completeness import what_is_missing
from fedfuse.catalogue.datasets import find_card
from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.paths import expanded
from fedfuse.core.randomness import Key
from fedfuse.data.callable import read_callable
from fedfuse.data.dataset import Dataset, Examples, Owners
from fedfuse.data.given import GIVEN, read_given
from fedfuse.data.hub import read_hub
from fedfuse.data.lookup import read_known
from fedfuse.data.measure import measure
from fedfuse.data.own_files import read_own_files
from fedfuse.data.readers import Contents, Found, Reading
from fedfuse.data.readers.contents import check_columns, check_range, describe
from fedfuse.data.settings import GENERATED, HUB_PREFIX, INSTALLED, DataSettings
from fedfuse.data.tokens import TextSettings, Tokenizer, tokenizer_of
from fedfuse.data.toys import read_toy


def load(settings: DataSettings, key: Key, tokenizer: Tokenizer | None = None) -> Dataset:
    """Read the dataset; the key decides generated examples and which ones a limit keeps.

    ``tokenizer`` is for texts that models of other data shall read, in the place of the one that ``text`` names.
    """
    card = find_card(settings.name)
    reading = _reading(settings, card, tokenizer or tokenizer_of(settings.text or TextSettings()))
    try:
        found = _find(settings, card, reading, key)
    except MemoryError:
        raise DataError(f"{settings.name} needs more memory than there is; give fewer or smaller examples") from None
    if card is not None:
        _check_card(found, card, settings)
    _check_inputs(found, settings)
    names = _class_names(found, card, settings)
    for part, contents in found.parts.items():
        if contents.is_labelled:
            check_range(contents.labels, len(names), f"{found.origin} ({part} examples)")
    _check_no_empty_class(found, names)
    return Dataset(
        settings.name,
        _examples(found.train, settings.train_limit, key.child("train_limit")),
        None if found.test is None else _examples(found.test, settings.test_limit, key.child("test_limit")),
        names,
        _normalisation(found.train, card),
        found.origin,
        reading.tokenizer if _are_texts(found) else None,
        None if found.validation is None else _examples(found.validation, None, key),
        None if card is None else what_is_missing(card, found.counts, found.origin),
        found.train.columns,
        None if found.public is None else _examples(found.public, None, key),
    )


def _reading(settings: DataSettings, card: Card | None, tokenizer: Tokenizer) -> Reading:
    if card is None:
        columns = settings.input_column, settings.label_column, settings.client_column
        ignored = settings.ignore_columns
        return Reading(*columns, settings.resize, settings.channels, tokenizer=tokenizer, ignored=ignored)
    if card.is_text:
        return Reading(None, card.label_column, card.client_column, tokenizer=tokenizer)
    # A card knows its channels, which makes the few gray images of a colour set RGB.
    channels = settings.channels or (card.shape[0] if len(card.shape) == 3 else None)
    return Reading(None, card.label_column, card.client_column, settings.resize, channels)


def _find(settings: DataSettings, card: Card | None, reading: Reading, key: Key) -> Found:
    if settings.name in GENERATED + INSTALLED:
        return read_toy(settings, reading, key)
    if settings.name == "python":
        return read_callable(str(settings.path), reading)
    if settings.name in GIVEN:
        return read_given(settings.name, str(settings.path), reading)
    path = _place(settings.path, "data.path")
    if card is not None:
        return read_known(card, path, reading, settings.validation == "official")
    if settings.name.startswith(HUB_PREFIX):
        return read_hub(settings.name.removeprefix(HUB_PREFIX), reading, settings.validation == "official")
    assert path is not None
    test_path = _place(settings.test_path, "data.test_path")
    return read_own_files(settings.name, path, test_path, settings.client_files, reading)


def _place(path: str | None, key: str) -> Path | None:
    return None if path is None else expanded(path, key)


def _check_card(found: Found, card: Card, settings: DataSettings) -> None:
    if card.is_text:
        if not _are_texts(found):
            raise DataError(
                f"{found.origin} holds no texts, but {card.title} has them; check that the file is the right one"
            )
    elif settings.resize is None and settings.channels is None and found.train.inputs.shape[1:] != card.shape:
        expected = "x".join(str(size) for size in card.shape)
        raise DataError(
            f"{found.origin} holds inputs of {describe(found.train.inputs)}, but {card.title} has {expected}; "
            "check that the file is the right one"
        )


def _check_inputs(found: Found, settings: DataSettings) -> None:
    train = found.train.inputs
    for part, contents in found.parts.items():
        if contents.inputs.shape[1:] != train.shape[1:] or contents.inputs.dtype != train.dtype:
            raise DataError(
                f"{found.origin}: training inputs have {describe(train)} and {part} inputs {describe(contents.inputs)}"
            )
        check_columns(contents, found.train, f"{found.origin}: {part} and training examples")
    if found.train.clients is None and settings.client_column is not None:
        raise DataError(f"data.client_column: {found.origin} has no column '{settings.client_column}'")
    if settings.text is not None and not _are_texts(found):
        raise ConfigError(f"data.text is for texts, but {found.origin} holds none; remove it")
    if train.dtype != np.uint8:
        for key in ("resize", "channels", "augment"):
            if getattr(settings, key):
                kind = "texts" if _are_texts(found) else "numbers"
                raise ConfigError(f"data.{key} is for images, but {found.origin} holds {kind}; remove it")
    if _are_texts(found) and settings.normalisation in ("none", "half"):
        raise ConfigError(f"data.normalisation is for images and numbers, but {found.origin} holds texts; remove it")


def _are_texts(found: Found) -> bool:
    return found.train.inputs.dtype == np.int32


def _class_names(found: Found, card: Card | None, settings: DataSettings) -> tuple[str, ...]:
    names, expected = found.train.class_names, settings.classes or (card.classes if card else None)
    if names is None:
        _check_no_huge_label(found, expected)
        return tuple(str(label) for label in range(expected or int(found.train.labels.max()) + 1))
    if expected is not None and len(names) != expected:
        raise DataError(f"{found.origin} names {len(names)} classes, but {settings.name} has {expected}")
    for part, contents in found.parts.items():
        if contents.class_names not in (None, names):
            raise DataError(
                f"{found.origin}: the training and the {part} files name different classes; they must agree"
            )
    return names


def _check_no_huge_label(found: Found, expected: int | None) -> None:
    """Before anything is counted up to it."""
    highest = int(found.train.labels.max())
    if expected is None and highest >= len(found.train.labels):
        raise DataError(
            f"{found.origin}: label {highest} is more than the number of training examples; count labels from 0 "
            "without gaps"
        )


def _check_no_empty_class(found: Found, names: tuple[str, ...]) -> None:
    empty = np.flatnonzero(np.bincount(found.train.labels, minlength=len(names)) == 0)
    if len(empty):
        label = int(empty[0])
        raise DataError(
            f"{found.origin}: no training example has label {label} (class '{names[label]}'); remove the class or add "
            "examples, and count labels from 0 without gaps"
        )


def _examples(contents: Contents, limit: int | None, key: Key) -> Examples:
    examples = Examples(torch.from_numpy(contents.inputs), torch.from_numpy(contents.labels), _owners(contents))
    if limit is None or limit >= len(examples):
        return examples
    kept = key.numpy().choice(len(examples), size=limit, replace=False)
    kept.sort()
    return examples.select(torch.from_numpy(kept))


def _owners(contents: Contents) -> Owners | None:
    """Clients numbered in the order of their names, in which 2 comes before 10."""
    if contents.clients is None:
        return None
    names, numbers = np.unique(contents.clients, return_inverse=True)
    order = sorted(range(len(names)), key=lambda position: _by_number(str(names[position])))
    return Owners(
        torch.from_numpy(np.argsort(order)[numbers]).long(), tuple(str(names[position]) for position in order)
    )


def _by_number(name: str) -> list[tuple[int, str]]:
    return [(int(digits[:1000] or 0), text) for text, digits in re.findall(r"(\D*)(\d*)", name)]


def _normalisation(train: Contents, card: Card | None) -> Normalisation:
    """The card's constants, unless ``channels`` changed how many are needed; none for texts."""
    if train.inputs.dtype == np.int32:
        return Normalisation((), ())
    known = None if card is None else card.normalisation
    return known if known is not None and len(known.mean) == train.inputs.shape[1] else measure(train.inputs)
