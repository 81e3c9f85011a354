"""Examples in docstrings say what really happens."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest
import torch

import fedfuse

SOURCE = Path(fedfuse.__file__).parent
FILES = sorted(path for path in SOURCE.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))
MODULES = [".".join(("fedfuse", *path.relative_to(SOURCE).with_suffix("").parts)) for path in FILES]


@pytest.mark.parametrize("module", MODULES)
def test_examples_are_true(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"fedfuse": fedfuse, "Experiment": fedfuse.Experiment, "torch": torch, "__name__": "examples"}
    found = doctest.DocTestFinder(exclude_empty=True).find(import_module(module), module, globs=names)
    examples = [test for test in found if test.examples]
    assert examples
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    for test in examples:
        said: list[str] = []
        assert not runner.run(test, out=said.append).failed, "".join(said)
