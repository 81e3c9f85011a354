"""What there is to know about methods and data, as tables for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from fedfuse.catalogue.card import Card, Normalisation
from fedfuse.catalogue.index import MethodRow
from fedfuse.catalogue.places import how_to_get, missing_at_hand, place_of, where_looked_for

if TYPE_CHECKING:
    from fedfuse.methods import Method


def table(
    *columns: str, title: str | None = None, numbers: tuple[str, ...] = (), first_may_wrap: bool = False
) -> Table:
    """An empty table in the house style; the columns named in ``numbers`` are right-aligned; nothing is cut."""
    result = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for index, column in enumerate(columns):
        number = column in numbers
        whole = number or (index == 0 and not first_may_wrap)
        result.add_column(column, justify="right" if number else "left", no_wrap=whole, overflow="fold")
    return result


def family_tables(methods: Mapping[str, MethodRow]) -> Iterator[Table]:
    """All methods, family by family: what each exchanges, keeps and needs, and whose it is if not ours."""
    families: dict[str, dict[str, MethodRow]] = {}
    for name, method in methods.items():
        families.setdefault(method.family, {})[name] = method
    for family, members in families.items():
        result = Table(box=None, show_header=False, title=f"\n{family}", title_justify="left", title_style="bold")
        result.add_column(no_wrap=True)
        result.add_column()
        for name, method in members.items():
            result.add_row(name, f"[bold]{escape(method.summary)}[/bold] [dim]({escape(method.citation)})[/dim]")
            if method.origin:
                result.add_row("", f"from      {escape(method.origin)}")
            result.add_row("", f"exchanges {method.exchanges}")
            result.add_row("", f"keeps     server: {method.server_keeps}; clients: {method.client_keeps}")
            public = method.public_inputs
            labels, mixed = ("yes" if flag else "no" for flag in (method.shares_labels, method.mixes_architectures))
            result.add_row("", f"public inputs: {public}; label counts: {labels}; mixed architectures: {mixed}")
            result.add_row()
        yield result


def method_table(method: Method, origin: str) -> Table:
    """What there is to know about one method."""
    result = Table(box=None, show_header=False, title=f"{method.title}: {method.summary}", title_justify="left")
    for what, value in (
        *((("from", origin),) if origin else ()),
        ("citation", method.citation),
        ("exchanges", method.exchanges),
        ("server keeps", method.server_keeps),
        ("clients keep", method.client_keeps),
        ("public inputs", method.public_inputs),
        ("label counts", "shared with the server" if method.shares_labels else "not shared"),
        ("mixed architectures", "learn from each other" if method.mixes_architectures else "each on its own"),
    ):
        result.add_row(what, value)
    return result


def dataset_table(name: str, card: Card) -> Table:
    """What there is to know about one dataset, and where it is looked for."""
    result = Table(box=None, show_header=False, title=f"{name}: {card.title}", title_justify="left")
    if card.sizes is not None:
        own = f", {card.validation_size:,} for data.validation = official" if card.validation_size else ""
        splits = f"{card.sizes[0]:,} training and {card.sizes[1]:,} test examples{own}"
    else:
        splits = "no official test split; data.test splits one off"
    constants = card.normalisation
    place, missing = place_of(card), missing_at_hand(card)
    here = f"a part, in {place}: {missing}" if missing else f"in {place}"
    facts = {
        "input": card.inputs,
        "classes": str(card.classes),
        "splits": splits,
        "clients": f"column '{card.client_column}': partition natural keeps them" if card.client_column else None,
        "normalisation": None if card.is_text else _normalisation(constants),
        "licence": card.licence,
        "looked for": "\n".join(where_looked_for(card)) if card.layouts else None,
        "at hand": "yes" if not card.layouts else here if place else "no",
        "how to get it": how_to_get(card) if card.layouts and not place else None,
    }
    for what, value in facts.items():
        if value is not None:
            result.add_row(what, value)
    return result


def _normalisation(constants: Normalisation | None) -> str:
    return f"mean {_numbers(constants.mean)}, std {_numbers(constants.std)}" if constants else "measured"


def _numbers(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:g}" for value in values)
