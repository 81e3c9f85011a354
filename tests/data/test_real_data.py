"""The real files, where a folder of them is named by FEDFUSE_DATA."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fedfuse.core.randomness import Key
from fedfuse.data import CATALOGUE, DataSettings, load
from fedfuse.data.measure import measure

FOLDER = os.environ.get("FEDFUSE_DATA")


@pytest.mark.skipif(FOLDER is None, reason="FEDFUSE_DATA is not set")
@pytest.mark.parametrize("name", ["usps", "omniglot", "femnist_digits", "tiny_imagenet"])
def test_files_are_what_their_cards_say(name: str) -> None:
    card = CATALOGUE[name]
    if not any(any(Path(str(FOLDER)).glob(layout.train)) for layout in card.layouts):
        pytest.skip(f"{name} is not in FEDFUSE_DATA")
    dataset = load(DataSettings(name=name), Key(0))
    assert dataset.shape == card.shape
    assert dataset.classes == card.classes
    if name != "tiny_imagenet":  # its constants are a convention, not a measurement
        measured = measure(dataset.train.inputs.numpy())
        assert measured.mean == pytest.approx(dataset.normalisation.mean, abs=1e-3)
        assert measured.std == pytest.approx(dataset.normalisation.std, abs=1e-3)
