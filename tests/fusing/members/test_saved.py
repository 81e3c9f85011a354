"""Models of fedfuse as members."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.fusing.members import find_blueprint, open_member
from fedfuse.models import Classifier, Mlp
from fedfuse.models.saved import save_model
from tests.fusing.members.asking import close, said_by
from tests.fusing.members.conftest import MEAN, NAMES, STD


def by_hand(network: Classifier, images: Tensor) -> Tensor:
    shape = (1, 3, 1, 1)
    mean, std = (np.array(constants).reshape(shape) for constants in (MEAN, STD))
    values = (images.numpy() / 255.0 - mean) / std
    with torch.no_grad():
        logits: Tensor = network(torch.from_numpy(values.astype(np.float32)))
    return logits


def test_voice_normalises_as_the_file_says(saved: Path, network: Classifier, images: Tensor) -> None:
    member = open_member(saved)
    assert close(said_by(member, images), by_hand(network, images))
    assert member.about.class_names == NAMES
    assert (member.about.name, member.about.architecture, member.about.shape) == ("net", "mlp", (3, 8, 8))
    assert member.about.parameters == 3 * 64 * 6 + 6 + 6 * 3 + 3


def test_images_of_another_size_are_refitted(saved: Path, network: Classifier, images: Tensor) -> None:
    large = images.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)
    assert close(said_by(open_member(saved), large), by_hand(network, images))


def test_a_voice_is_the_same_bits_again_and_of_any_part(saved: Path, images: Tensor) -> None:
    member = open_member(saved)
    assert torch.equal(said_by(member, images), said_by(open_member(saved), images))
    assert said_by(member, images[:0]).shape == (0, 3)


def test_caller_knows_better(saved: Path, images: Tensor) -> None:
    member = open_member(saved, normalise="none", classes=["a", "b", "c"], licence="mit", name="mine")
    assert not close(said_by(member, images), said_by(open_member(saved), images))
    assert (member.about.class_names, member.about.licence, member.about.name) == (("a", "b", "c"), "mit", "mine")
    with pytest.raises(ConfigError, match="has 3 classes, and not 2"):
        open_member(saved, classes=2)


def test_numbers_and_texts(tmp_path: Path) -> None:
    rows = torch.randn(9, 5, generator=torch.Generator().manual_seed(0)) * 3 + 1
    blueprint = find_blueprint("mlp", rows, ("a", "b"))
    network = blueprint.build(2, Key(0)).eval()
    (path,) = blueprint.write(tmp_path, network, ("a", "b"), {})
    values = (rows.double() - rows.double().mean(dim=0)) / rows.double().std(dim=0, correction=0)
    with torch.no_grad():
        assert close(said_by(open_member(path), rows), network(values.float()))
    texts = ["a good film", "bad", ""]
    blueprint = find_blueprint("text_cnn", texts, ("a", "b"))
    network = blueprint.build(2, Key(0)).eval()
    (path,) = blueprint.write(tmp_path, network, ("a", "b"), {})
    member = open_member(tmp_path)
    assert close(said_by(member, texts), network(blueprint.prepare(texts)).detach())
    assert (member.about.reads, member.about.shape) == ("texts", (64,))
    with pytest.raises(ConfigError, match="leave normalise out"):
        open_member(path, normalise="half")


def test_what_the_caller_says_is_checked(saved: Path) -> None:
    with pytest.raises(ConfigError, match="classes should be a list of names"):
        open_member(saved, classes="cat,dog,owl")
    with pytest.raises(ConfigError, match="shape should be channels, height and width"):
        open_member(saved, shape=(32, 32))
    with pytest.raises(ConfigError, match="classes names one class twice"):
        open_member(saved, classes=["a", "a", "b"])


def test_texts_are_refused_by_a_network_of_images(saved: Path) -> None:
    with pytest.raises(ConfigError, match="net reads images, and the inputs are texts"):
        said_by(open_member(saved), ["a text"])


def test_weights_come_from_the_file_one_by_one(saved: Path, network: Classifier) -> None:
    weights = open_member(saved).weights
    assert weights is not None
    assert {name: tensor.shape for name, tensor in weights.items()} == {
        name: tensor.shape for name, tensor in network.state_dict().items()
    }
    weights["classifier.bias"].zero_()
    assert torch.equal(weights["classifier.bias"], network.state_dict()["classifier.bias"])


def test_a_run_folder_with_one_model_is_that_model(saved: Path, tmp_path: Path) -> None:
    final = tmp_path / "run" / "final"
    final.mkdir(parents=True)
    shutil.copy(saved, final / "mlp.safetensors")
    (tmp_path / "run" / "README.md").write_text("---\nlicense: mit\n---\n")
    about = open_member(tmp_path / "run").about
    assert (about.name, about.licence) == ("run", "mit")
    shutil.copy(saved, final / "other.safetensors")
    with pytest.raises(DataError, match=r"holds 2 models; give the file of one, for example .*mlp.safetensors"):
        open_member(tmp_path / "run")


def test_truncated_and_diverged(saved: Path, tmp_path: Path, network: Classifier) -> None:
    half = tmp_path / "half.safetensors"
    half.write_bytes(saved.read_bytes()[:-8])
    with pytest.raises(DataError, match="no whole safetensors file"):
        open_member(half)
    weights = Weights.of(network)
    weights.flat[0] = float("nan")
    save_model(tmp_path / "nan.safetensors", Mlp(arch="mlp", hidden=[6]), (3, 8, 8), 3, weights)
    with pytest.raises(DataError, match="not a finite number"):
        said_by(open_member(tmp_path / "nan.safetensors"), torch.zeros(1, 3, 8, 8, dtype=torch.uint8))


def test_a_file_without_an_interface_takes_for_granted_and_says_so(tmp_path: Path, network: Classifier) -> None:
    save_model(tmp_path / "old.safetensors", Mlp(arch="mlp", hidden=[6]), (3, 8, 8), 3, Weights.of(network))
    assert "scaled to 0..1" in open_member(tmp_path / "old.safetensors").about.notes[0]


def test_student_begins_with_the_files_weights_and_comes_back(saved: Path, images: Tensor, tmp_path: Path) -> None:
    student = find_blueprint(str(saved), images, NAMES)
    network = student.build(3, Key(0))
    assert close(network.eval()(student.prepare(images)), said_by(open_member(saved), images))
    other = find_blueprint(str(saved), images, ("a", "b", "c")).build(3, Key(0))
    assert not torch.equal(other.state_dict()["classifier.weight"], network.state_dict()["classifier.weight"])
    body = [name for name in network.state_dict() if not name.startswith("classifier.")]
    assert all(torch.equal(other.state_dict()[name], network.state_dict()[name]) for name in body)
    (written,) = student.write(tmp_path, network, NAMES, {})
    again = open_member(written)
    assert torch.equal(said_by(again, images), said_by(open_member(saved), images))
    assert again.about.class_names == NAMES


def test_blueprint_of_a_member_is_fresh_until_it_is_loaded(saved: Path, images: Tensor) -> None:
    member = open_member(saved)
    blueprint = find_blueprint(member, images, NAMES)
    network = blueprint.build(3, Key(9)).eval()
    assert not close(network(blueprint.prepare(images)), said_by(member, images))
    assert member.weights is not None
    blueprint.load(network, member.weights)
    assert close(network(blueprint.prepare(images)), said_by(member, images))
    assert all(torch.equal(tensor, member.weights[name]) for name, tensor in blueprint.weights_of(network).items())
    with pytest.raises(ConfigError, match=r"it needs 'classifier.weight'"):
        blueprint.load(network, {name: t for name, t in member.weights.items() if name != "classifier.weight"})
