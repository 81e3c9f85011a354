"""The pages of all commands and all keys are what the code says, and complete."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from fedfuse.catalogue.details import sections, slots
from fedfuse.cli.commands import COMMANDS
from fedfuse.cli.surface import surface_of

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGES = runpy.run_path(str(DOCS / "write_reference.py"))["pages"]()


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name], f"docs/{name} is not what the code says; make docs"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_is_on_it(command: str) -> None:
    page = PAGES["commands.md"]
    assert f"### fedfuse {command}\n" in page
    for one in (inner for each in (surface_of(command),) for inner in (each, *each.commands)):
        assert all(f"{name}`" in page or f"{name} " in page for option in one.options for name in option.names)


def test_every_key_and_kind_is_on_it() -> None:
    page = PAGES["keys.md"]
    assert [name for keys in sections().values() for name in keys if f"| `{name}` |" not in page] == []
    kinds = [f"`{{{slot.chooser}: {kind}}}`" for slot in slots().values() for kind in slot.kinds]
    assert [kind for kind in kinds if kind not in page] == []


@pytest.mark.parametrize("name", PAGES)
def test_every_row_has_the_cells_of_its_header(name: str) -> None:
    header = 0
    for line in PAGES[name].splitlines():
        cells = line.replace("\\|", "").count("|")
        header = cells if line.startswith("|") and not header else header if line.startswith("|") else 0
        assert cells == header or not line.startswith("|"), line
