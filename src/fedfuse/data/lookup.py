"""Read a dataset of the catalogue from wherever it is.

First ``data.path`` or ``FEDFUSE_DATA``, then the cache of the Hugging Face hub, then the hub itself, then a package of
the operating system. With ``data.path`` only that folder counts.
"""

from __future__ import annotations

from pathlib import Path

from fedfuse.catalogue.card import Card, Layout
from fedfuse.catalogue.hub_copies import offline
from fedfuse.catalogue.places import candidates, how_to_get, is_installed, names_of
from fedfuse.core.errors import DataError
from fedfuse.data.formats import read_format
from fedfuse.data.hub_files import fetch
from fedfuse.data.readers import Found, Reading


def read_known(card: Card, folder: Path | None, reading: Reading, validation: bool = False) -> Found:
    """Read a dataset of the catalogue from wherever it is, with its validation split if that is asked for."""
    if not validation:
        card = card.without_validation
    for place, layout in candidates(card, folder):
        if any(place.glob(layout.train)):
            return _read(layout, place, reading)
    if folder is not None:
        raise DataError(how_to_get(card, folder))
    fetched, reason = _fetch(card)
    if fetched is not None and card.hub is not None:
        return _read(card.hub.files, fetched, reading)
    if card.package is not None and is_installed(card.package):
        return _read(card.package.files, Path(card.package.folder), reading)
    raise DataError(how_to_get(card) + reason)


def _fetch(card: Card) -> tuple[Path | None, str]:
    """The folder of the fetched files, or why there is none."""
    if card.hub is None or offline():
        return None, ""
    try:
        return fetch(card.hub), ""
    except DataError as error:
        return None, f" ({error})"


def _read(layout: Layout, folder: Path, reading: Reading) -> Found:
    files = {part: sorted(folder.glob(pattern)) for part, pattern in layout.parts.items()}
    for part, pattern in layout.parts.items():
        if not files[part]:
            there = files["training"][0].name
            raise DataError(f"{folder} holds {there} but no {pattern}; put the {part} file beside it")
    contents = {part: read_format(layout.format, found, reading) for part, found in files.items()}
    return Found(contents["training"], contents.get("test"), names_of(files), contents.get("validation"))
