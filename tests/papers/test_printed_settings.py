"""Every cell at scale paper has the setting that its paper prints, quantity by quantity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from fedfuse_papers.cells import Cell, cells_of
from fedfuse_papers.entries import PAPERS, load_entry, names
from fedfuse_papers.entry import agrees
from tests.papers.settings_in_words import Quantities, quantities

TABLE: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "printed_settings.yaml").read_text(encoding="utf-8"))


def printed(cell: Cell) -> Quantities:
    """What the table says of a cell; more special lines win."""
    paper, name = cell.entry.split("/")
    book, entry = TABLE[paper], TABLE[paper]["entries"][name]
    method = cell.experiment(0).config.method.name
    layers = [book["every"], {"method": method}, book["methods"].get(method, {}), entry.get("every", {})]
    layers += [entry.get("labels", {}).get(axis, {}).get(label, {}) for axis, label in cell.labels.items()]
    layers += [one["then"] for one in entry.get("together", ()) if agrees(cell.labels, one["labels"])]
    result: Quantities = {}
    for layer in layers:
        result = laid_over(result, layer)
    return result


def laid_over(base: Quantities, changes: Quantities) -> Quantities:
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        result[key] = laid_over(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return {key: value for key, value in result.items() if value is not None}


def named(found: Any, wanted: Any) -> Any:
    """Of nested quantities, those that the table names; the outer ones must agree one and all."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        return {key: named(found.get(key), value) for key, value in wanted.items()}
    return found


def test_every_entry_is_in_the_table_and_nothing_else_is() -> None:
    assert {f"{paper}/{entry}" for paper in PAPERS for entry in TABLE[paper]["entries"]} == set(names())


@pytest.mark.parametrize("name", names())
def test_cells_are_as_printed(name: str) -> None:
    entry = load_entry(name)
    for cell in cells_of(name, entry, "paper"):
        wanted, found = printed(cell), quantities(cell, entry)
        assert {key: named(value, wanted.get(key)) for key, value in found.items()} == wanted, cell.title
