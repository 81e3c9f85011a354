"""Find the files of a dataset of the catalogue: ``data.path``, then ``FEDFUSE_DATA``, then the Hugging Face hub."""

from __future__ import annotations

import os
from pathlib import Path

from fedfuse.core.errors import DataError
from fedfuse.data.catalogue import Card, Layout
from fedfuse.data.hub import hub_installed, read_hub
from fedfuse.data.own_files import cached_table
from fedfuse.data.readers import Found, Reading


def read_known(card: Card, folder: Path | None, reading: Reading) -> Found:
    """Read a dataset of the catalogue from wherever it is."""
    places = [folder] if folder is not None else _data_folders()
    for place in places:
        layout = _present(card, place)
        if layout is not None:
            return _read(layout, place, reading)
    if folder is None and card.hub is not None and hub_installed():
        return _fetch(card, reading, places)
    raise DataError(_how_to_get(card, places))


def is_at_hand(card: Card) -> bool:
    """Whether the dataset can be read without a path and without a network."""
    return not card.layouts or any(_present(card, folder) for folder in _data_folders())


def _data_folders() -> list[Path]:
    chosen = os.environ.get("FEDFUSE_DATA")
    return [Path(chosen).expanduser()] if chosen else []


def _present(card: Card, folder: Path) -> Layout | None:
    return next((layout for layout in card.layouts if any(folder.glob(layout.train))), None)


def _read(layout: Layout, folder: Path, reading: Reading) -> Found:
    train = sorted(folder.glob(layout.train))
    test = sorted(folder.glob(layout.test)) if layout.test is not None else []
    if layout.test is not None and not test:
        raise DataError(f"{folder} holds {train[0].name} but no {layout.test}; put the test file beside it")
    origin = ", ".join(file.name for file in train + test)
    return Found(
        cached_table("parquet", train, reading), cached_table("parquet", test, reading) if test else None, origin
    )


def _fetch(card: Card, reading: Reading, places: list[Path]) -> Found:
    assert card.hub is not None
    try:
        return read_hub(card.hub, reading, card.hub_test_split)
    except DataError as error:
        raise DataError(_how_to_get(card, places)) from error


def _how_to_get(card: Card, places: list[Path]) -> str:
    files = " and ".join(
        pattern.replace("*", "") for pattern in (card.layouts[0].train, card.layouts[0].test) if pattern
    )
    looked = f"not in {places[0]}" if places else "not on this machine (FEDFUSE_DATA is not set)"
    hub = f", or let it come from the hub as {card.hub} (pip install 'fedfuse[hub]' and a network)" if card.hub else ""
    return f"{card.title} is {looked}: put {files} into a folder and name it in data.path or FEDFUSE_DATA{hub}"
