"""The index is what the code says, and the names in it are those of the methods."""

from __future__ import annotations

from importlib.resources import files

from fedfuse.catalogue.index import own_methods
from fedfuse.catalogue.method_names import method_names
from fedfuse.experiment.write_index import index_text
from fedfuse.methods import METHODS


def test_the_index_is_what_the_code_says():
    written = (files("fedfuse.catalogue") / "index.json").read_text(encoding="utf-8")
    assert written == index_text(), "run make index"


def test_names_are_told_without_loading_any_method():
    assert list(own_methods()) == list(METHODS)
    assert method_names()[: len(METHODS)] == list(METHODS)
