"""``fedfuse keys``: every key of an experiment file, with what it is unless said."""

from __future__ import annotations

from typing import Annotated

import typer


def keys(
    word: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="a section, a key, or a part of its name: training, alpha")
    ] = None,
) -> None:
    """List every key of an experiment file with its default, what it may be and what it means."""
    from fedfuse.catalogue.details import slots
    from fedfuse.catalogue.keys import every_place, find_keys
    from fedfuse.cli.console import console, print_lines
    from fedfuse.cli.shown import Shown, grouped
    from fedfuse.core.errors import ConfigError, shortened, suggest
    from fedfuse.experiment.listing import list_keys

    if word is None:
        shown = [Shown.at(address, key.default, key) for address, key in list_keys().items()]
    else:
        places = find_keys(word)
        if not places:
            near = suggest(word, {place.name for place in every_place().values()}, listed=False)
            raise ConfigError(f"no key has '{shortened(word)}' in its name{near}; fedfuse keys lists all")
        shown = [Shown.of(place) for place in places]
    print_lines(grouped(shown, slots(), console.width))
    print_lines(["", "fedfuse parts SLOT KIND: more about a part; --set KEY=VALUE changes any key"])
