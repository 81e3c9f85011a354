"""The files of the catalogue are what the code says, and the names in them are those of the methods."""

from __future__ import annotations

from importlib.resources import files

import pytest

from fedfuse.catalogue.index import own_methods
from fedfuse.catalogue.method_names import method_names
from fedfuse.experiment.write_index import texts
from fedfuse.methods import METHODS

TEXTS = texts()
MOST_LETTERS = 48
"""Of a method's summary in a list that has a line for each, beside the longest name."""


@pytest.mark.parametrize("name", TEXTS)
def test_the_file_is_what_the_code_says(name: str):
    written = (files("fedfuse.catalogue") / name).read_text(encoding="utf-8")
    assert written == TEXTS[name], "run make index"


def test_names_are_told_without_loading_any_method():
    assert list(own_methods()) == list(METHODS)
    assert method_names()[: len(METHODS)] == list(METHODS)


def test_a_list_has_a_line_for_every_method():
    assert [name for name, row in own_methods().items() if len(row.brief) > MOST_LETTERS] == []
