"""What there is to choose from, printed. Nothing heavy is imported, not even what reads options."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import astuple

from fedfuse.catalogue.index import MethodRow
from fedfuse.cli.columns import by_row, in_columns, wrapped
from fedfuse.cli.console import console, print_lines, say
from fedfuse.experiment import listing

MODELS = [("arch", "fedfuse models lists the architectures")]
NEEDS = [
    "P public inputs, L labelled ones, C clients tell class counts, M models of",
    "different architectures learn from each other",
]


def list_methods() -> None:
    """A line for each, family by family."""
    rows, remarks = listing.method_rows()
    words = [
        (name, _needs(row), f"{row.brief} ({row.origin})" if row.origin else row.brief) for name, row in rows.items()
    ]
    lines = dict(zip(rows, by_row(words, console.width, indent=" "), strict=True))
    for family in dict.fromkeys(row.family for row in rows.values()):
        print_lines([family], "bold")
        print_lines(line for name, row in rows.items() if row.family == family for line in lines[name])
    say(remarks)
    print_lines(NEEDS, "dim")
    print_lines(["fedfuse methods NAME: what it exchanges and keeps, and every parameter"])


def list_datasets() -> None:
    """What is known by name, and whether it is on this machine."""
    rows = [(name, *map(str, astuple(row))) for name, row in listing.list_datasets().items()]
    _print_table(("name", "what it is", "input", "classes", "at hand", "licence"), rows, wrapping=(1, 5), right=(3,))
    print_lines(
        [
            "fedfuse datasets NAME: where one is looked for, and how to get it",
            "Own data: name parquet, csv, npz, images or python with a path, or hf:NAME.",
        ]
    )


def list_models() -> None:
    """Architectures and how large they are."""
    rows = [
        (name, row.description, *("-" if size is None else f"{size:,}" for size in (row.parameters, row.statistics)))
        for name, row in listing.list_models().items()
    ]
    _print_table(("arch", "what it is", "parameters", "statistics"), rows, wrapping=(1,), right=(2, 3))
    print_lines(
        [
            "Numbers are for 3x32x32 inputs (texts: 64 tokens, 10,000 words), 10 classes and",
            "the defaults; statistics are BatchNorm's, which travel too.",
            "fedfuse models NAME: its parameters",
        ]
    )


def list_presets() -> None:
    """Experiment files inside the package."""
    _print_table(("name", "what it is"), list(listing.list_presets().items()))
    print_lines(["fedfuse presets NAME > mine.yaml: a file to start from"])


def list_parts() -> None:
    """A line for every kind, slot by slot."""
    for name, row in listing.list_parts().items():
        print_lines(wrapped(f"{name}: {row.meaning}", console.width), "bold")
        lines = [(kind, part.meaning) for kind, part in row.kinds.items()] if name != "models" else MODELS
        print_lines(in_columns(lines, console.width, indent="  "))
    print_lines(
        [
            "",
            "fedfuse parts SLOT KIND: parameters, equations, methods that have it",
            'A class of yours fills a slot by its address: {kind: "my_file:MyClass"}',
        ]
    )


def list_keys() -> None:
    """Every key of an experiment that chooses nothing."""
    from fedfuse.catalogue.details import slots
    from fedfuse.cli.shown import Shown, grouped

    shown = [Shown.at(address, key.default, key) for address, key in listing.list_keys().items()]
    print_lines(grouped(shown, slots(), console.width))
    print_lines(["", "fedfuse parts SLOT: the keys of other kinds; --set KEY=VALUE changes any key"])


LISTS: dict[str, Callable[[], None]] = {
    "methods": list_methods,
    "datasets": list_datasets,
    "models": list_models,
    "presets": list_presets,
    "parts": list_parts,
    "keys": list_keys,
}
"""By the command that prints each when nothing follows it."""


def show(what: str, *names: str | None) -> None:
    """The list, or what there is to know about one entry of it."""
    given = [name for name in names if name is not None]
    if not given:
        LISTS[what]()
        return
    from fedfuse.cli import named

    by_name = {
        "methods": named.show_method,
        "datasets": named.show_dataset,
        "models": named.show_model,
        "presets": named.show_preset,
        "parts": named.show_parts,
        "keys": named.show_keys,
    }
    by_name[what](*given)  # type: ignore[operator]


def _print_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], wrapping: Collection[int] = (-1,), right: Collection[int] = ()
) -> None:
    first, *lines = in_columns([header, *rows], console.width, wrapping, right)
    print_lines([first], "bold")
    print_lines(lines)


def _needs(row: MethodRow) -> str:
    public = {"no": "-", "yes": "P", "labelled": "L"}[row.public_inputs]
    return f"{public}{'C' if row.shares_labels else '-'}{'M' if row.mixes_architectures else '-'}"
