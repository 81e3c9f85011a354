"""What there is to know about one method, dataset, architecture, part, key or preset, printed.

As in ``lists.py``, nothing heavy is imported, not even what reads options.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from fedfuse.catalogue.card import Card, Normalisation
from fedfuse.catalogue.index import MethodRow
from fedfuse.cli.columns import in_columns, wrapped
from fedfuse.cli.commands import COMMANDS
from fedfuse.cli.console import console, print_lines
from fedfuse.cli.shown import Shown, grouped, key_lines, part_lines
from fedfuse.core.errors import ConfigError, shortened, suggest, unknown
from fedfuse.experiment import listing

MOST = 10
"""So many matches of a word fit on a screen."""


def show_method(name: str, as_yaml: bool = False) -> None:
    """Its needs, and its recipe with every parameter."""
    found = listing.describe_method(name)
    if as_yaml:
        from fedfuse.core.yaml_text import dump_yaml

        sys.stdout.write(dump_yaml({"method": {"name": name, **found.recipe}}))
        return
    _print_title(f"{found.row.title}: {found.row.summary}")
    print_lines(in_columns(list(_method_facts(found.row)), console.width, indent="  "))
    print_lines([""])
    shown = [Shown.at(address, value, key, top="method") for address, value, key in found.keys]
    print_lines(grouped(shown, found.slots, console.width))


def show_dataset(name: str) -> None:
    """Its card: what it is, where it is looked for, how to get it."""
    from fedfuse.catalogue.datasets import CATALOGUE

    if name not in CATALOGUE:
        raise ConfigError(unknown("dataset", name, CATALOGUE))
    _print_title(f"{name}: {CATALOGUE[name].title}")
    print_lines(in_columns(list(_dataset_facts(CATALOGUE[name])), console.width, indent="  "))


def show_model(name: str) -> None:
    """An architecture: what it is, how large, and what it can be told."""
    if name not in listing.list_models():
        raise ConfigError(unknown("architecture", name, listing.list_models()))
    slots = listing.list_parts()
    row, size = slots["models"], listing.list_models()[name]
    print_lines(part_lines("models", row, name, row.kinds[name], slots, console.width))
    if size.parameters is not None:
        numbers = f"{size.parameters:,} parameters and {size.statistics or 0:,} statistics of BatchNorm"
        print_lines(
            ["", *wrapped(f"{numbers} with these defaults, for {size.inputs} and 10 classes", console.width, "  ")]
        )


def show_parts(slot: str, kind: str | None = None) -> None:
    """All kinds of a slot with their keys, or one with all there is to say about it."""
    name, row = listing.find_slot(slot)
    known = listing.list_parts()
    if kind is not None:
        print_lines(part_lines(name, row, kind, listing.find_part(name, kind), known, console.width))
        return
    _print_title(f"{name}: {row.meaning}")
    print_lines(in_columns([("key", ", ".join(row.places))], console.width, indent="  "))
    for each, part in row.kinds.items():
        print_lines(["", *wrapped(f"{each}: {part.meaning}", console.width)])
        print_lines(key_lines(part.keys, known, console.width, indent="    "))


def show_keys(word: str) -> None:
    """The keys at and below a section, or those whose name has the word in it."""
    from fedfuse.catalogue.details import slots
    from fedfuse.catalogue.keys import every_place, find_keys

    places = find_keys(word)
    if not places:
        near = suggest(word, {place.name for place in every_place().values()}, listed=False)
        raise ConfigError(f"no key has '{shortened(word)}' in its name{near}; fedfuse keys lists all")
    print_lines(grouped([Shown.of(place) for place in places], slots(), console.width))


def show_preset(name: str) -> None:
    """The file, to start from."""
    from fedfuse.experiment import presets

    if name not in presets.names():
        raise ConfigError(unknown("preset", name, presets.names()))
    sys.stdout.write(presets.text(name))


def explain(*words: str) -> None:
    """What has to do with words, the best matches first, each with the command that says more."""
    from fedfuse.experiment.searching import everything, search

    found = search(*words)
    if not found:
        names = {word for match in everything() for word in match.name.replace(".", " ").split()} | set(COMMANDS)
        near = suggest(words[0], names, listed=False)
        raise ConfigError(f"nothing here has to do with '{shortened(' '.join(words))}'{near}")
    for match in found[:MOST]:
        print_lines([match.command or match.name], "bold")
        print_lines(wrapped(match.text, console.width, "    "))
    if len(found) > MOST:
        print_lines([f"and {len(found) - MOST} more; another word narrows it down"])


def _print_title(text: str) -> None:
    print_lines(wrapped(text, console.width), "bold")


def _method_facts(row: MethodRow) -> Iterator[tuple[str, str]]:
    if row.origin:
        yield "from", row.origin
    yield "citation", row.citation
    yield "exchanges", row.exchanges
    yield "server keeps", row.server_keeps
    yield "clients keep", row.client_keeps
    needs = {"no": "not needed", "yes": "needed, without labels", "labelled": "needed, with labels"}
    yield "public inputs", needs[row.public_inputs]
    yield "label counts", "shared with the server" if row.shares_labels else "not shared"
    yield "mixed architectures", "learn from each other" if row.mixes_architectures else "each on its own"
    if row.page:
        yield "page", row.page


def _dataset_facts(card: Card) -> Iterator[tuple[str, str]]:
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
