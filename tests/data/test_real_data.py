"""The real files, where a folder of them is named by FEDFUSE_DATA."""

from __future__ import annotations

import os

import pytest

from fedfuse.catalogue.places import place_of
from fedfuse.core.randomness import Key
from fedfuse.data import CATALOGUE, DataSettings, load
from fedfuse.data.measure import measure

FOLDER = os.environ.get("FEDFUSE_DATA")


@pytest.mark.skipif(FOLDER is None, reason="FEDFUSE_DATA is not set")
@pytest.mark.parametrize("name", ["sst2", "sst5"])
def test_texts_are_what_their_cards_say(name: str) -> None:
    card = CATALOGUE[name]
    if place_of(card) is None:
        pytest.skip(f"{name} is not on this machine")
    dataset = load(DataSettings(name=name, validation="official"), Key(0))
    assert dataset.test is not None
    assert dataset.validation is not None
    assert (len(dataset.train), len(dataset.test)) == card.sizes
    assert len(dataset.validation) == card.validation_size
    assert dataset.classes == card.classes
    lengths = dataset.train.lengths
    assert lengths is not None
    assert 15 < lengths.double().mean() < 25  # words of a sentence, of which the treebank's paper counts 19


@pytest.mark.skipif(FOLDER is None, reason="FEDFUSE_DATA is not set")
@pytest.mark.parametrize("name", ["usps", "omniglot", "femnist_digits", "tiny_imagenet", "fashion_mnist"])
def test_files_are_what_their_cards_say(name: str) -> None:
    card = CATALOGUE[name]
    if place_of(card) is None:
        pytest.skip(f"{name} is not on this machine")
    dataset = load(DataSettings(name=name), Key(0))
    assert dataset.shape == card.shape
    assert dataset.classes == card.classes
    assert (dataset.train.owners is not None) == (card.client_column is not None)
    if name != "tiny_imagenet":  # its constants are a convention, not a measurement
        measured = measure(dataset.train.inputs.numpy())
        assert measured.mean == pytest.approx(dataset.normalisation.mean, abs=1e-3)
        assert measured.std == pytest.approx(dataset.normalisation.std, abs=1e-3)
