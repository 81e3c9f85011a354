"""``import fedfuse``: one flat, lazy namespace."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import fedfuse

SOURCE = ast.parse(Path(fedfuse.__file__).read_text(encoding="utf-8"))


def imported_for_type_checkers() -> dict[str, str]:
    (block,) = (node for node in SOURCE.body if isinstance(node, ast.If))
    return {
        alias.name: str(node.module) for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }


def test_type_checkers_and_users_get_the_same_names_from_the_same_places() -> None:
    assert imported_for_type_checkers() == fedfuse._PLACES


def test_all_and_dir_name_everything_once() -> None:
    assert fedfuse.__all__ == sorted({"__version__", *fedfuse._PLACES})
    assert dir(fedfuse) == fedfuse.__all__


@pytest.mark.parametrize("name", fedfuse._PLACES)
def test_a_name_is_what_its_module_calls_so(name: str) -> None:
    assert getattr(fedfuse, name) is getattr(import_module(fedfuse._PLACES[name]), name)


def test_no_name_is_hidden_by_a_folder_of_the_package() -> None:
    folders = {path.stem for path in Path(fedfuse.__file__).parent.iterdir()}
    assert not folders & set(fedfuse._PLACES)


def test_star_import_brings_all_names() -> None:
    names: dict[str, object] = {}
    exec("from fedfuse import *", names)
    assert set(fedfuse.__all__) <= names.keys()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'fly'"):
        fedfuse.fly  # noqa: B018


def test_import_alone_loads_neither_torch_nor_pandas() -> None:
    code = "import sys, fedfuse; dir(fedfuse); sys.exit(bool({'torch', 'pandas', 'datasets'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
