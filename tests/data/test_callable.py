from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from fedfuse.core.errors import FedfuseError
from fedfuse.core.randomness import Key
from fedfuse.data import Dataset, DataSettings, load

MODULE = """
import numpy as np
import torch

inputs, labels = np.arange(8, dtype=np.uint8).reshape(2, 1, 2, 2), [0, 1]

def pair():
    return inputs, labels

def train_and_test():
    return (inputs, labels), (torch.from_numpy(inputs), torch.tensor(labels))

def named():
    return {"x": inputs, "y": labels, "clients": ["ann", "bob"]}

def number():
    return 3

def fails():
    raise KeyError("no such thing")

def crooked():
    return {"x": inputs, "y": labels, "clients": ["ann"]}
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_data.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_data", raising=False)


def call(function: str) -> Dataset:
    return load(DataSettings(name="python", path=function), Key(0))


def test_a_module_in_the_current_folder() -> None:
    before = list(sys.path)
    for function in ("pair", "train_and_test", "named"):
        dataset = call(f"own_data:{function}")
        assert dataset.train.inputs.flatten().tolist() == list(range(8))
        assert (dataset.test is None) == (function != "train_and_test")
    assert dataset.train.owners is not None
    assert dataset.train.owners.names == ("ann", "bob")
    assert sys.path == before
    assert np.isclose(dataset.normalisation.mean[0], 3.5 / 255)


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("own_data", "must be module:function"),
        ("own_dater:pair", "own_dater cannot be imported from the working folder"),
        ("own_data:pear", "unknown function 'pear'"),
        ("own_data:number", r"returned int; it must return \(inputs, labels\)"),
        ("own_data:fails", "own_data:fails raised KeyError: 'no such thing'"),
        ("own_data:crooked", "clients are .* each of the 2 training examples"),
    ],
)
def test_mistakes(function: str, sentence: str) -> None:
    with pytest.raises(FedfuseError, match=sentence):
        call(function)
