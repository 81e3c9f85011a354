"""A model's file holds what it needs; earlier ones go on, and what is not a model gets a sentence that helps."""

from __future__ import annotations

import json
import re
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

import fedfuse
from fedfuse.core.errors import ConfigError, DataError, FedfuseError
from fedfuse.core.tensor_files import read_safetensors, write_safetensors
from fedfuse.core.weights import Weights
from fedfuse.experiment.run import Experiment
from tests.helpers import tiny_config

pytestmark = pytest.mark.usefixtures("without_pictures")


def test_a_run_folder_is_not_a_model_but_has_one(tmp_path: Path) -> None:
    result = Experiment(tiny_config("fedavg")).run(tmp_path / "run")
    model = tmp_path / "run" / "final" / "mlp.safetensors"
    for folder in (tmp_path / "run", model.parent):
        sentence = f"{folder} is a folder; give the file of a model, for example {model}"
        with pytest.raises(DataError, match=re.escape(sentence)):
            fedfuse.load_model(folder)
    fedfuse.load_model(model)
    with pytest.raises(ConfigError, match=r"unknown model 'nlp' \(did you mean 'mlp'\?\)"):
        result.model("nlp")


def test_other_places(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere does not exist$"):
        fedfuse.load_model(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"is a folder; give the file of a model$"):
        fedfuse.load_model(tmp_path)
    (tmp_path / "text").write_text("no tensors here")
    with pytest.raises(DataError, match="text is not a model saved by fedfuse"):
        fedfuse.load_model(tmp_path / "text")


def test_the_package_names_what_it_offers() -> None:
    assert dir(fedfuse) == sorted(fedfuse.__all__)
    assert all(hasattr(fedfuse, name) for name in fedfuse.__all__)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return Experiment(tiny_config("fedavg")).run(tmp_path / "run").folder.final_weights("mlp")


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """The same file with other metadata."""
    tensors, about = read_safetensors(path)
    change(about)
    other = path.with_name("changed.safetensors")
    write_safetensors(other, tensors, about)
    return other


def test_weights_that_take_other_inputs_than_the_file_says(saved: Path) -> None:
    tensors, about = read_safetensors(saved)
    tensors["layers.1.weight"] = tensors["layers.1.weight"][:, :-1].contiguous()
    write_safetensors(saved, tensors, about)
    with pytest.raises(DataError, match="the network cannot take inputs as its file describes them: RuntimeErr"):
        fedfuse.load_model(saved).predict([[1.0, 2.0]])


def as_format_1(about: dict[str, Any]) -> None:
    for key in ("format", "interface", "own_names"):
        del about[key]


def test_the_file_says_all_that_is_needed_in_plain_json(saved: Path) -> None:
    with safe_open(saved, framework="pt") as file:
        about = json.loads(file.metadata()["fedfuse"])
    dataset = load_data(saved)
    assert about["format"] == 2
    assert about["architecture"]["arch"] == "mlp"
    assert about["input_shape"] == [2]
    assert about["interface"]["class_names"] == ["0", "1", "2"]
    inputs = about["interface"]["inputs"]
    assert inputs["kind"] == "numbers"
    np.testing.assert_allclose(inputs["mean"], dataset.mean(axis=0, dtype=np.float64), rtol=1e-12)
    np.testing.assert_allclose(inputs["std"], dataset.std(axis=0, dtype=np.float64), rtol=1e-12)


def load_data(saved: Path) -> np.ndarray:
    from fedfuse.core.randomness import Key
    from fedfuse.data import load

    config = Experiment.load(saved.parents[1]).config
    return load(config.data, Key(config.seed).child("load")).train.inputs.numpy()


def test_a_file_of_format_1_gives_the_same_network_and_says_what_it_lacks(saved: Path) -> None:
    earlier = changed(saved, as_format_1)
    old, new = fedfuse.load_model(earlier), fedfuse.load_model(saved)
    assert Weights.of(old).equals(Weights.of(new))
    assert torch.equal(old(torch.ones(1, 2)), new(torch.ones(1, 2)))
    assert old.classes_ is None
    for ask in (old.predict, old.predict_proba):
        with pytest.raises(
            DataError, match=r"^this model's file has no normalisation, class names or tokenizer"
        ) as said:
            ask([[1.0, 2.0]])
        assert "\n" not in str(said.value)


def test_weights_have_the_bytes_of_the_last_checkpoint(saved: Path) -> None:
    """What the file says beside them changes nothing."""
    checkpoint = load_file(max((saved.parents[1] / "checkpoints").glob("*.safetensors")))
    flat = torch.cat([tensor.flatten() for tensor in Weights.of(fedfuse.load_model(saved)).values()])
    assert any(torch.equal(tensor, flat) for tensor in checkpoint.values())


def set_at(*path: Any, value: Any) -> Callable[[dict[str, Any]], object]:
    def change(about: dict[str, Any]) -> None:
        inner: Any = about
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value

    return change


HOSTILE = {
    "a later format": (set_at("format", value=4), "has format 4, and this version of fedfuse reads up to 3; update"),
    "a format below 1": (set_at("format", value=0), "format: Input should be greater than or equal to 1"),
    "a format of words": (set_at("format", value="two"), "format: Input should be a valid integer"),
    "no architecture": (lambda about: about.pop("architecture"), "architecture: Field required"),
    "an architecture of words": (set_at("architecture", value="mlp"), "architecture: Input should be"),
    "an architecture without a name": (lambda about: about["architecture"].pop("arch"), "architecture"),
    "an unknown architecture": (set_at("architecture", "arch", value="nlp"), "architecture"),
    "an unknown key of it": (set_at("architecture", "depth", value=3), "unknown key 'depth'"),
    "no shape": (lambda about: about.pop("input_shape"), "input_shape: Field required"),
    "a shape of nothing": (set_at("input_shape", value=[]), r"input_shape: \[\] is not the shape of an input"),
    "a negative shape": (set_at("input_shape", value=[-2]), "is not the shape of an input"),
    "a shape of words": (set_at("input_shape", value="two"), "is not the shape of an input"),
    "a number for a shape": (set_at("input_shape", value=2), "input_shape: 2 is not the shape"),
    "another shape": (set_at("input_shape", value=[3]), "constants of 2 channels or columns do not fit inputs of"),
    "a text's shape": (set_at("input_shape", value={"length": 2, "vocabulary": 5}), "do not fit inputs of"),
    "no class": (set_at("classes", value=0), "classes: Input should be greater than or equal to 1"),
    "more classes than names": (set_at("classes", value=4), "3 classes are named, but there are 4"),
    "fewer names": (set_at("interface", "class_names", value=["a"]), "1 classes are named, but there are 3"),
    "names that are none": (set_at("interface", "class_names", value=[1, 2, 3]), "class_names.0: Input should be a"),
    "no inputs": (lambda about: about["interface"].pop("inputs"), "interface.inputs: Field required"),
    "unknown inputs": (set_at("interface", "inputs", "kind", value="sounds"), "interface.inputs"),
    "a deviation of 0": (set_at("interface", "inputs", "std", value=[0, 1]), "one deviation above 0 for each"),
    "a mean less": (set_at("interface", "inputs", "mean", value=[0]), "needs one mean and one deviation"),
    "a mean of nothing": (
        set_at("interface", "inputs", "mean", 0, value=None),
        "mean.0: Input should be a valid number",
    ),
    "a name of a column": (set_at("interface", "inputs", "columns", value=["a"]), "1 names of columns do not fit"),
    "a key from elsewhere": (set_at("interface", "inputs", "pickle", value="x"), "unknown key 'pickle'"),
    "other widths": (set_at("architecture", "hidden", value=[6, 6]), "does not fit the network that 'mlp' builds now"),
    "classes of words": (set_at("classes", value="x"), "classes: Input should be a valid integer"),
    "no classes": (lambda about: about.pop("classes"), "classes: Field required"),
    "a shape of sizes in words": (set_at("input_shape", value=["2"]), "is not the shape of an input"),
    "a text's shape with more": (set_at("input_shape", value={"length": 2, "evil": 5}), "unexpected keyword"),
    "a surrogate": (set_at("architecture", "arch", value="\ud800"), "architecture"),
    "a very long reason": (set_at("input_shape", value=["x" * 99] * 999), "is not the shape of an input|xxx"),
}


@pytest.mark.parametrize("name", list(HOSTILE))
def test_metadata_that_were_tampered_with_are_refused_in_one_sentence(saved: Path, name: str) -> None:
    change, words = HOSTILE[name]
    with pytest.raises(FedfuseError, match=words) as refusal:
        fedfuse.load_model(changed(saved, change))
    assert "\n" not in str(refusal.value)
    assert "changed.safetensors" in str(refusal.value)


LARGE = {
    "very many classes": {"classes": 10**9, "interface": None},
    "more classes than numbers": {"classes": 10**30, "interface": None},
    "a very large input": {"input_shape": [10**6, 10**6], "interface": None},
    "a very wide layer": {"architecture": {"arch": "mlp", "hidden": [10**9]}},
    "two very wide layers": {"architecture": {"arch": "mlp", "hidden": [10**12, 10**12]}},
    "very many layers": {"architecture": {"arch": "mlp", "hidden": [6] * 100_000}},
    "a very large head": {"architecture": {"arch": "mlp", "hidden": [6], "projection_head": 10**9}},
    "a very deep network": {
        "architecture": {"arch": "text_transformer", "layers": 10**9},
        "input_shape": {"length": 2, "vocabulary": 5},
        "interface": None,
    },
    "very many words": {
        "architecture": {"arch": "text_cnn"},
        "input_shape": {"length": 2, "vocabulary": 10**10},
        "interface": None,
    },
}


@pytest.mark.parametrize("name", list(LARGE))
def test_a_network_that_is_much_larger_than_its_file_is_never_made(saved: Path, name: str) -> None:
    file, began, memory = changed(saved, lambda about: about.update(LARGE[name])), time.process_time(), _memory()
    with pytest.raises(DataError, match=r"is not a model saved by fedfuse: (its network|architecture)") as refusal:
        fedfuse.load_model(file)
    assert len(str(refusal.value)) < 500
    assert time.process_time() - began < 2
    assert _memory() - memory < 100


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def rewritten(path: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> Path:
    """The same file with other tensors, and a digest that fits."""
    tensors, about = read_safetensors(path)
    change(tensors)
    write_safetensors(path, tensors, about)
    return path


WEIGHT = "classifier.weight"
TENSORS: dict[str, tuple[Callable[[dict[str, torch.Tensor]], object], str]] = {
    "whole numbers": (lambda t: t.update({WEIGHT: t[WEIGHT].long()}), "holds what is not a finite number"),
    "complex numbers": (lambda t: t.update({WEIGHT: t[WEIGHT].to(torch.complex64)}), "not a finite number"),
    "no numbers": (lambda t: t.update({WEIGHT: t[WEIGHT] * float("nan")}), "the run that made it has diverged"),
    "infinite numbers": (lambda t: t.update({WEIGHT: t[WEIGHT] / 0}), "the run that made it has diverged"),
    "one tensor more": (lambda t: t.update(more=torch.zeros(3)), "does not fit the network .* 'more'"),
    "one tensor less": (lambda t: t.pop(WEIGHT), "does not fit the network .* 'classifier.weight'"),
    "another shape": (lambda t: t.update({WEIGHT: t[WEIGHT][:-1]}), "does not fit the network"),
    "no tensors": (lambda t: t.clear(), "does not fit the network"),
}


@pytest.mark.parametrize("name", list(TENSORS))
def test_weights_that_are_none_are_refused_in_one_sentence(saved: Path, name: str) -> None:
    change, words = TENSORS[name]
    with pytest.raises(DataError, match=words) as refusal:
        fedfuse.load_model(rewritten(saved, change))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("place", [-1, -40, 60, 200])
def test_a_flipped_bit_is_noticed(saved: Path, place: int) -> None:
    content = bytearray(saved.read_bytes())
    content[place] ^= 16
    saved.write_bytes(content)
    with pytest.raises(DataError, match="is not a model saved by fedfuse"):
        fedfuse.load_model(saved)


def test_a_file_of_a_version_without_digests_is_read(saved: Path) -> None:
    from safetensors.torch import save

    expected, (tensors, about) = fedfuse.load_model(saved), read_safetensors(saved)
    saved.write_bytes(save(tensors, {"fedfuse": json.dumps(about)}))
    assert Weights.of(fedfuse.load_model(saved)).equals(Weights.of(expected))


def test_a_file_cut_off_anywhere_is_refused_in_one_sentence(saved: Path) -> None:
    whole = saved.read_bytes()
    for length in (0, 4, 8, 100, len(whole) // 2, len(whole) - 1):
        saved.write_bytes(whole[:length])
        with pytest.raises(DataError, match="is not a model saved by fedfuse") as refusal:
            fedfuse.load_model(saved)
        assert "\n" not in str(refusal.value)


def test_a_file_without_our_metadata_is_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(2)}, tmp_path / "plain.safetensors")
    with pytest.raises(DataError, match="is not a model saved by fedfuse"):
        fedfuse.load_model(tmp_path / "plain.safetensors")


@pytest.mark.parametrize("arch", ["a_module_of_mine:Net", "own"])
def test_no_code_is_imported_unasked(saved: Path, arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_module_of_mine.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    architecture = {"arch": arch, "callable": "a_module_of_mine:net"}
    with pytest.raises(DataError, match=r"is built by calling 'a_module_of_mine:[Nn]et'; if you trust the file"):
        fedfuse.load_model(changed(saved, set_at("architecture", value=architecture)))
