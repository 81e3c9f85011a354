"""Networks, functions, methods and parts as values: known by address and source, or refused in one sentence."""

from __future__ import annotations

import linecache
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fedfuse
from fedfuse.core.errors import ConfigError, FedfuseError, RunFolderError
from fedfuse.data import Iid
from fedfuse.experiment.run import Experiment
from fedfuse.methods import METHODS
from fedfuse.parts.local import Proximal
from tests.experiment import python_nets

pytestmark = pytest.mark.usefixtures("without_pictures")
TINY: dict[str, Any] = {
    "data": {"name": "blobs", "examples": 90},
    "partition": {"kind": "iid", "clients": 3},
    "models": {"mlp": {"arch": "mlp", "hidden": [6]}},
    "training": {"epochs": 1},
    "federation": {"rounds": 2},
    "evaluation": {"pictures": False},
}


def config_of(**sections: Any) -> Any:
    return Experiment({**TINY, **sections}).config


@pytest.mark.parametrize("given", [python_nets.Net, python_nets.net, python_nets.plain_net])
def test_a_class_or_function_is_the_same_as_its_address(given: Any) -> None:
    address = f"tests.experiment.python_nets:{given.__name__}"
    by_address = config_of(models={"net": {"arch": "own", "callable": address}})
    assert config_of(models={"net": given}) == by_address
    assert config_of(models={"net": {"arch": "own", "callable": given}}) == by_address
    assert by_address.foreign_code.keys() == {address}


def test_a_model_without_a_name_is_called_model() -> None:
    assert config_of(models=python_nets.Net) == config_of(models={"model": python_nets.Net})


def test_a_network_gives_the_same_bits_as_its_function(tmp_path: Path) -> None:
    one, other = (
        fedfuse.run(TINY, models={"net": given}, out=tmp_path / given.__name__).model().state_dict()
        for given in (python_nets.Net, python_nets.plain_net)
    )
    assert all(torch.equal(one[name], other[name]) for name in one | other)


def test_an_instance_is_its_class_if_that_makes_its_like_and_its_weights_are_said_not_to_count() -> None:
    with pytest.warns(UserWarning, match="every run makes a Net of its own, and the seed decides its first weights"):
        given = config_of(models={"net": python_nets.Net()})
    assert given == config_of(models={"net": python_nets.Net})


SENTENCES = {
    "an instance with arguments": (python_nets.Net(9), "give a function without arguments that makes it"),
    "an instance with a hidden argument": (python_nets.Scaled(2.0), "give a function without arguments that makes it"),
    "an instance of a demanding class": (python_nets.Demanding(3), "give a function without arguments that makes it"),
    "an instance of torch's": (nn.Sequential(nn.Linear(2, 3)), "give a function without arguments that makes it"),
    "a lambda": (python_nets.nameless, "models.net: <lambda> of tests.experiment.python_nets is a lambda"),
    "a local function": ((lambda: lambda: None)(), "where no other process finds it"),
    "a partial": (partial(python_nets.Net, width=3), "where no other process finds it"),
    "a class inside another": (python_nets.Net.Inner, "where no other process finds it"),
    "a number": (3, "models.net"),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_what_no_other_process_could_make_is_refused_in_one_sentence(case: str) -> None:
    given, sentence = SENTENCES[case]
    with pytest.raises(FedfuseError) as refused:
        config_of(models={"net": given})
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (python_nets.Demanding, "missing 1 required positional argument"),
        (python_nets.Pair, "returns a value of type tuple"),
    ],
)
def test_a_network_that_cannot_be_used_is_refused_before_anything_is_written(
    given: Any, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        fedfuse.run(TINY, models={"net": given}, out=tmp_path / "run")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module of the user's in the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_code_of_a_test", raising=False)
    file = tmp_path / "own_code_of_a_test.py"
    file.write_text(
        "import numpy as np\nfrom torch import nn\n\n\n"
        "def net(classes):\n    return nn.Linear(2, classes)\n\n\n"
        "def load():\n    x = np.random.default_rng(0).normal(size=(60, 2))\n    return x, (x[:, 0] > 0).astype(int)\n"
    )
    return file


@pytest.mark.parametrize("section", ["models", "data"])
def test_a_change_of_the_source_changes_the_identity_and_is_not_resumed(section: str, own_file: Path) -> None:
    module = import_module(own_file.stem)
    given: dict[str, Any] = {"models": {"net": module.net}} if section == "models" else {"data": module.load}
    before = config_of(**given).sha256()
    fedfuse.run(TINY, **given, out="run")
    own_file.write_text(own_file.read_text() + "# another thought\n")
    assert config_of(**given).sha256() != before
    with pytest.raises(RunFolderError, match="was begun with other code behind own_code_of_a_test:"):
        fedfuse.run("run", resume=True)


def in_a_notebook(monkeypatch: pytest.MonkeyPatch, cell: str, name: str) -> Any:
    """What a cell defines, as Jupyter has it: in a main module without a file, with its source in the line cache."""
    main = sys.modules["__main__"]
    monkeypatch.delattr(main, "__file__", raising=False)
    monkeypatch.setitem(linecache.cache, "<cell>", (len(cell), None, cell.splitlines(keepends=True), "<cell>"))
    known: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(cell, "<cell>", "exec"), known)
    monkeypatch.setattr(main, name, known[name], raising=False)
    return known[name]


FUNCTION = "from torch import nn\ndef net(classes):\n    return nn.Linear(2, classes)\n"
CLASS = "from torch import nn\nclass net(nn.Linear):\n    def __init__(self):\n        super().__init__(2, 3)\n"


@pytest.mark.parametrize("cell", [FUNCTION, CLASS], ids=["function", "class"])
def test_code_of_a_notebook_is_found_by_its_own_process_only(
    cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = {**TINY, "models": {"net": in_a_notebook(monkeypatch, cell, "net")}}
    assert fedfuse.run(study, out=tmp_path / "here").is_finished
    sentence = "net was written in a script or notebook, where only its own process finds it; move it into a file"
    with pytest.raises(ConfigError, match=sentence):
        fedfuse.run(study, engine={"workers": 2}, out=tmp_path / "here", overwrite=True)
    assert fedfuse.load_run(tmp_path / "here").is_finished
    with pytest.raises(ConfigError, match=sentence):
        fedfuse.compare(study, ["fedavg"], jobs=2, out=tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()
    monkeypatch.delattr(sys.modules["__main__"], "net")
    with pytest.raises(ConfigError, match=sentence):
        fedfuse.run(tmp_path / "here", out=tmp_path / "again")


@pytest.mark.parametrize("cell", [FUNCTION, CLASS], ids=["function", "class"])
def test_a_changed_cell_of_a_notebook_has_another_identity(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = [
        config_of(models={"net": in_a_notebook(monkeypatch, text, "net")}).sha256()
        for text in (cell, cell, cell.replace("2, ", "2 , "))
    ]
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_method_is_a_name_a_mapping_or_an_object() -> None:
    by_name = config_of(method="fedprox")
    assert config_of(method={"name": "fedprox"}) == by_name
    assert config_of(method=METHODS["fedprox"]) == by_name
    assert config_of(method={"local": Proximal()}).recipe.local == by_name.recipe.local


def test_a_partition_and_paths_are_objects_too() -> None:
    assert config_of(partition=Iid(clients=3)) == config_of()


def test_distillation_inputs_are_arrays_too(tmp_path: Path) -> None:
    inputs = np.random.default_rng(1).normal(size=(40, 2))
    result = fedfuse.run(
        TINY,
        method={"name": "feddf", "fuse": {"distiller": {"steps": 2}}},
        source={"kind": "dataset", "data": (inputs, np.arange(40) % 2)},
        out=tmp_path / "run",
    )
    assert result.summary["source"]["size"] == 40


@pytest.mark.parametrize("labels", [np.zeros(60, int), np.array(["ill"] * 60)])
def test_data_of_a_single_class_is_a_mistake(labels: Any, tmp_path: Path) -> None:
    with pytest.raises(FedfuseError, match=r"every label is '(0|ill)', so that there is nothing to learn"):
        Experiment.load(TINY, data=(np.random.default_rng(0).normal(size=(60, 4)), labels)).run(tmp_path / "run")
