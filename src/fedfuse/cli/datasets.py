"""``fedfuse datasets``: what data is known by name, and where it is looked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from fedfuse.core.errors import ConfigError, unknown

if TYPE_CHECKING:
    from fedfuse.catalogue.card import Card, Normalisation


def datasets(
    name: Annotated[str | None, typer.Argument(metavar="[DATASET]", help="show this dataset's card")] = None,
) -> None:
    """List the datasets known by name, or show one's card: what it is, where it is looked for, how to get it."""
    from fedfuse.catalogue.datasets import CATALOGUE
    from fedfuse.cli.columns import in_columns, wrapped
    from fedfuse.cli.console import console, print_lines
    from fedfuse.cli.lists import list_datasets

    if name is None:
        list_datasets()
        return
    if name not in CATALOGUE:
        raise ConfigError(unknown("dataset", name, CATALOGUE))
    card = CATALOGUE[name]
    print_lines(wrapped(f"{name}: {card.title}", console.width), "bold")
    print_lines(in_columns(list(_facts(card)), console.width, indent="  "))


def _facts(card: Card) -> Iterator[tuple[str, str]]:
    from fedfuse.catalogue.places import how_to_get, missing_at_hand, place_of, where_looked_for

    place, missing = place_of(card), missing_at_hand(card)
    yield "input", card.inputs
    yield "classes", str(card.classes)
    yield "splits", _splits(card)
    if card.client_column:
        yield "clients", f"column '{card.client_column}': partition natural keeps them"
    if not card.is_text:
        yield "normalisation", _normalisation(card.normalisation)
    yield "licence", card.licence
    if not card.layouts:
        yield "at hand", "yes"
        return
    yield "looked for", "\n".join(where_looked_for(card))
    here = f"a part, in {place}: {missing}" if missing else f"in {place}"
    yield "at hand", here if place else "no"
    if not place:
        yield "how to get it", how_to_get(card)


def _splits(card: Card) -> str:
    if card.sizes is None:
        return "no official test split; data.test splits one off"
    own = f", {card.validation_size:,} for data.validation = official" if card.validation_size else ""
    return f"{card.sizes[0]:,} training and {card.sizes[1]:,} test examples{own}"


def _normalisation(constants: Normalisation | None) -> str:
    return f"mean {_numbers(constants.mean)}, std {_numbers(constants.std)}" if constants else "measured"


def _numbers(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:g}" for value in values)
