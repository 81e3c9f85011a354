"""Whether what was read is what the experiment asked for, and what its classes are called."""

from __future__ import annotations

import numpy as np

from fedfuse.catalogue.card import Card
from fedfuse.core.errors import ConfigError, DataError
from fedfuse.data.readers import Found
from fedfuse.data.readers.contents import check_columns, describe
from fedfuse.data.settings import DataSettings


def check_card(found: Found, card: Card, settings: DataSettings) -> None:
    if card.is_text:
        if not are_texts(found):
            raise DataError(
                f"{found.origin} holds no texts, but {card.title} has them; check that the file is the right one"
            )
    elif settings.resize is None and settings.channels is None and found.train.inputs.shape[1:] != card.shape:
        expected = "x".join(str(size) for size in card.shape)
        raise DataError(
            f"{found.origin} holds inputs of {describe(found.train.inputs)}, but {card.title} has {expected}; "
            "check that the file is the right one"
        )


def check_inputs(found: Found, settings: DataSettings) -> None:
    train = found.train.inputs
    for part, contents in found.parts.items():
        if contents.inputs.shape[1:] != train.shape[1:] or contents.inputs.dtype != train.dtype:
            raise DataError(
                f"{found.origin}: training inputs have {describe(train)} and {part} inputs {describe(contents.inputs)}"
            )
        check_columns(contents, found.train, f"{found.origin}: {part} and training examples")
    if found.train.clients is None and settings.client_column is not None:
        raise DataError(f"data.client_column: {found.origin} has no column '{settings.client_column}'")
    if found.train.columns is None:
        for key in ("categories", "empty_cells", "empty_values"):
            if getattr(settings, key) != type(settings).model_fields[key].default:
                raise ConfigError(f"data.{key} is for columns of a table, but {found.origin} has one input; remove it")
    if settings.text is not None and not are_texts(found):
        raise ConfigError(f"data.text is for texts, but {found.origin} holds none; remove it")
    if train.dtype != np.uint8:
        for key in ("resize", "channels", "augment"):
            if getattr(settings, key):
                kind = "texts" if are_texts(found) else "numbers"
                raise ConfigError(f"data.{key} is for images, but {found.origin} holds {kind}; remove it")
    if are_texts(found) and settings.normalisation not in ("dataset", "experiment"):
        raise ConfigError(f"data.normalisation is for images and numbers, but {found.origin} holds texts; remove it")


def are_texts(found: Found) -> bool:
    return found.train.inputs.dtype == np.int32


def class_names(found: Found, card: Card | None, settings: DataSettings) -> tuple[str, ...]:
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
            "without gaps, or say in data.labels which class each of them is"
        )


def check_no_empty_class(found: Found, names: tuple[str, ...]) -> None:
    empty = np.flatnonzero(np.bincount(found.train.labels, minlength=len(names)) == 0)
    if len(empty):
        label = int(empty[0])
        raise DataError(
            f"{found.origin}: no training example has label {label} (class '{names[label]}'); remove the class or add "
            "examples, and count labels from 0 without gaps, or say in data.labels which class each of them is"
        )
