"""What there is to choose from, printed. Nothing heavy is imported, not even what reads options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple

from fedfuse.cli.console import console, say
from fedfuse.cli.tables import family_tables, table
from fedfuse.experiment import listing


def list_methods() -> None:
    rows, remarks = listing.method_rows()
    for family in family_tables(rows):
        console.print(family, highlight=False)
    say(remarks)
    console.print("fedfuse methods NAME shows the recipe with every parameter.", highlight=False)


def list_datasets() -> None:
    rows = table("name", "what it is", "input", "classes", "at hand", "licence", numbers=("classes",))
    for name, row in listing.list_datasets().items():
        rows.add_row(name, *map(str, astuple(row)))
    console.print(rows)
    console.print(
        "fedfuse datasets NAME shows where one is looked for and how to get it. "
        "Own data: name parquet, csv, npz, images or python with a path, or hf:NAME.",
        highlight=False,
    )


def list_models() -> None:
    numbers = ("parameters", "statistics")
    rows = table("arch", "what it is", *numbers, numbers=numbers)
    for name, row in listing.list_models().items():
        sizes = ("-" if size is None else f"{size:,}" for size in (row.parameters, row.statistics))
        rows.add_row(name, row.description, *sizes)
    console.print(rows)
    console.print(
        "Numbers are for 3x32x32 inputs (texts: 64 tokens, 10,000 words), 10 classes and the defaults; statistics are "
        "BatchNorm's, which travel too.",
        highlight=False,
    )


def list_presets() -> None:
    rows = table("name", "what it is")
    for preset, description in listing.list_presets().items():
        rows.add_row(preset, description)
    console.print(rows)


LISTS: dict[str, Callable[[], None]] = {
    "methods": list_methods,
    "datasets": list_datasets,
    "models": list_models,
    "presets": list_presets,
}
"""By the command that prints each when nothing follows it."""
