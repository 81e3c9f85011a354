"""From the ``data`` section of an experiment to a dataset in memory."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from fedfuse.catalogue.card import Card, Normalisation
from fedfuse.catalogue.completeness import what_is_missing
from fedfuse.catalogue.datasets import find_card
from fedfuse.core.errors import DataError
from fedfuse.core.paths import expanded
from fedfuse.core.randomness import Key
from fedfuse.data.callable import read_callable
from fedfuse.data.checks import are_texts, check_card, check_inputs, check_no_empty_class, class_names
from fedfuse.data.dataset import Dataset, Examples, Owners
from fedfuse.data.filling import filled
from fedfuse.data.given import GIVEN, read_given
from fedfuse.data.hub import read_hub
from fedfuse.data.lookup import read_known
from fedfuse.data.measure import measure
from fedfuse.data.own_files import read_own_files
from fedfuse.data.readers import Contents, Found, Reading
from fedfuse.data.readers.contents import Array, Columns, Dialect
from fedfuse.data.readers.labels import check_range
from fedfuse.data.remarks import cautions_on, notes_on
from fedfuse.data.settings import GENERATED, HUB_PREFIX, INSTALLED, DataSettings
from fedfuse.data.splits import training_rows
from fedfuse.data.tokens import TextSettings, Tokenizer, tokenizer_of
from fedfuse.data.toys import read_toy


def load(
    settings: DataSettings,
    key: Key,
    tokenizer: Tokenizer | None = None,
    columns: Columns | None = None,
    split_key: Key | None = None,
) -> Dataset:
    """Read the dataset; the key decides generated examples and which ones a limit keeps.

    ``tokenizer`` and ``columns`` are for inputs that models of other data shall read, in the place of the one that
    ``text`` names and of those that are found. ``split_key`` tells which examples are no training examples.
    """
    card = find_card(settings.name)
    reading = _reading(settings, card, tokenizer or tokenizer_of(settings.text or TextSettings()))
    if columns is not None:
        reading = replace(reading, encoding=columns.as_encoding)
    found = _find(settings, card, reading, key)
    names = _checked_classes(found, card, settings)
    drawn = _drawn(len(found.train.labels), settings.train_limit, key.child("train_limit"))
    rows = _training_rows(drawn, found, settings, split_key)
    found, filling = filled(found, rows)
    is_own = card is None and settings.name not in GENERATED
    return Dataset(
        settings.name,
        _examples(found.train, drawn),
        None if found.test is None else _test_examples(found.test, settings, key),
        names,
        _normalisation(found.train, card, rows if settings.normalisation == "training" else None),
        found.origin,
        reading.tokenizer if are_texts(found) else None,
        None if found.validation is None else _examples(found.validation),
        None if card is None else what_is_missing(card, found.counts, found.origin),
        found.train.columns,
        None if found.public is None else _examples(found.public),
        "words" if found.train.classes is None else found.train.classes.kind,
        (*notes_on(found), *filling) if is_own else (),
        tuple(cautions_on(found, names)) if is_own else (),
    )


def _checked_classes(found: Found, card: Card | None, settings: DataSettings) -> tuple[str, ...]:
    """The names of the classes of data in which nothing is wrong."""
    if card is not None:
        check_card(found, card, settings)
    check_inputs(found, settings)
    names = class_names(found, card, settings)
    for part, contents in found.parts.items():
        if contents.is_labelled:
            check_range(contents.labels, len(names), f"{found.origin} ({part} examples)")
    check_no_empty_class(found, names)
    return names


def _reading(settings: DataSettings, card: Card | None, tokenizer: Tokenizer) -> Reading:
    if card is None:
        return Reading(
            settings.input_column,
            settings.label_column,
            settings.client_column,
            settings.resize,
            settings.channels,
            tokenizer=tokenizer,
            ignored=settings.ignore_columns,
            labels=tuple(settings.labels.items()),
            dialect=Dialect(settings.separator, settings.decimal, settings.encoding, settings.header),
            categories=settings.categories,
            may_be_empty=settings.empty_cells == "fill",
            empty_values=settings.empty_values,
        )
    if card.is_text:
        return Reading(None, card.label_column, card.client_column, tokenizer=tokenizer)
    # A card knows its channels, which makes the few gray images of a colour set RGB.
    channels = settings.channels or (card.shape[0] if len(card.shape) == 3 else None)
    return Reading(None, card.label_column, card.client_column, settings.resize, channels)


def _find(settings: DataSettings, card: Card | None, reading: Reading, key: Key) -> Found:
    try:
        return _read(settings, card, reading, key)
    except MemoryError:
        raise DataError(f"{settings.name} needs more memory than there is; give fewer or smaller examples") from None


def _read(settings: DataSettings, card: Card | None, reading: Reading, key: Key) -> Found:
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


def _drawn(examples: int, limit: int | None, key: Key) -> Array | None:
    """The positions that a limit keeps, in their order; None for all of them."""
    if limit is None or limit >= examples:
        return None
    kept = key.numpy().choice(examples, size=limit, replace=False)
    kept.sort()
    return kept


def _training_rows(drawn: Array | None, found: Found, settings: DataSettings, key: Key | None) -> Array:
    """The positions of what is no test example; all that were drawn where nobody splits, or nobody asks."""
    kept = np.arange(len(found.train.labels)) if drawn is None else drawn
    is_asked = settings.empty_cells == "fill" or settings.normalisation == "training"
    if key is None or not is_asked:
        return kept
    return kept[training_rows(len(kept), found.test is not None, settings, key)]


def _examples(contents: Contents, kept: Array | None = None) -> Examples:
    examples = Examples(torch.from_numpy(contents.inputs), torch.from_numpy(contents.labels), _owners(contents))
    return examples if kept is None else examples.select(torch.from_numpy(kept))


def _test_examples(contents: Contents, settings: DataSettings, key: Key) -> Examples:
    return _examples(contents, _drawn(len(contents.labels), settings.test_limit, key.child("test_limit")))


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


def _normalisation(train: Contents, card: Card | None, rows: Array | None) -> Normalisation:
    """The card's constants, unless ``channels`` changed how many are needed; none for texts.

    ``rows`` are the examples to measure on, if not all shall count and the card's constants neither.
    """
    if train.inputs.dtype == np.int32:
        return Normalisation((), ())
    if rows is not None:
        return measure(train.inputs[rows], train.columns)
    known = None if card is None else card.normalisation
    is_fit = known is not None and len(known.mean) == train.inputs.shape[1]
    return known if known is not None and is_fit else measure(train.inputs, train.columns)
