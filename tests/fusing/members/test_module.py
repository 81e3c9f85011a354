"""Modules and functions from Python: asked without a trace, and copied as students."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.randomness import Key
from fedfuse.fusing.members import find_blueprint, open_member
from fedfuse.fusing.raw import Raw
from fedfuse.models import Classifier
from tests.fusing.members.asking import close, said_by
from tests.fusing.members.conftest import NAMES


class Small(nn.Module):
    """A user's network, which can be made again without arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.5))
        self.last = nn.Linear(4 * 36, 3)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.last(self.body(x))
        return logits


@pytest.fixture
def small() -> Small:
    with Key(4).default_generator():
        return Small()


def test_the_callers_network_stays_as_it_was(small: Small, images: Tensor) -> None:
    small.train()
    small.body[1].eval()
    small.last.weight.requires_grad_(False)
    before, modes = copy.deepcopy(small.state_dict()), [module.training for module in small.modules()]
    answers = said_by(open_member(small), images)
    assert [module.training for module in small.modules()] == modes
    assert [parameter.requires_grad for parameter in small.parameters()].count(False) == 1
    assert all(torch.equal(before[name], tensor) for name, tensor in small.state_dict().items())
    with torch.no_grad():
        assert close(answers, small.eval()(images / 255))
    assert not answers.requires_grad
    (answers * torch.ones(3, requires_grad=True)).sum().backward()


def test_about_a_module(small: Small, network: Classifier, saved: Path, images: Tensor) -> None:
    about = open_member(small, normalise="imagenet", classes=NAMES).about
    assert (about.name, about.classes, about.class_names, about.notes) == ("Small", 3, NAMES, ())
    assert about.parameters == sum(parameter.numel() for parameter in small.parameters())
    other = copy.deepcopy(small)
    with torch.no_grad():
        other.last.bias[0] += 1
    assert open_member(other).about.sha256 != open_member(small).about.sha256
    assert torch.equal(said_by(open_member(network), images), said_by(open_member(saved), images))


def test_a_function_is_given_raw_inputs(images: Tensor) -> None:
    def bright(raw: Raw) -> Tensor:
        assert isinstance(raw, Tensor)
        return torch.stack([raw.float().mean(dim=(1, 2, 3)), torch.zeros(len(raw))], dim=1)

    member = open_member(bright, classes=["light", "dark"])
    assert close(said_by(member, images)[:, 0], images.float().mean(dim=(1, 2, 3)), 1e-3)
    with pytest.raises(ConfigError, match="does not say how many classes it knows"):
        open_member(bright)
    with pytest.raises(ConfigError, match="a value of type int is no model"):
        open_member(7)  # type: ignore[arg-type]


def test_networks_that_fail_get_a_sentence(small: Small, images: Tensor) -> None:
    with pytest.raises(ConfigError, match="Small cannot answer"):
        said_by(open_member(small), images[:, :, :4])
    with torch.no_grad():
        small.last.bias[0] = float("nan")
    with pytest.raises(Exception, match="not a finite number"):
        said_by(open_member(small), images)


def test_a_module_as_student_comes_back(small: Small, images: Tensor, tmp_path: Path) -> None:
    blueprint = find_blueprint(small, images, NAMES)
    network = blueprint.build(3, Key(0))
    assert next(network.parameters()) is not next(small.parameters())
    model, weights = blueprint.write(tmp_path, network, NAMES, {"steps": 3})
    assert load_file(weights).keys() == small.state_dict().keys()
    with pytest.raises(DataError, match="if you trust the file, load it with trust_own_code=True"):
        open_member(model)
    again = open_member(tmp_path, trust_own_code=True)
    assert close(said_by(again, images), network.eval()(blueprint.prepare(images)).detach(), 1e-6)
    assert again.about.class_names == NAMES
    with pytest.raises(ConfigError, match="should give a row of 4 logits"):
        blueprint.build(4, Key(0))
    blueprint.load(network, load_file(weights))
    member = open_member(small, shape=(3, 8, 8))
    assert member.blueprint is not None


def test_students_of_the_zoo(images: Tensor, tmp_path: Path) -> None:
    blueprint = find_blueprint({"arch": "mlp", "hidden": [5]}, images, NAMES)
    prepared = blueprint.prepare(images)
    assert close(prepared.mean(dim=(0, 2, 3)), torch.zeros(3), 1e-5)
    assert close(prepared.std(dim=(0, 2, 3), correction=0), torch.ones(3), 1e-5)
    network = blueprint.build(3, Key(7))
    assert torch.equal(network.classifier.weight, blueprint.build(3, Key(7)).classifier.weight)  # type: ignore[union-attr]
    (path,) = blueprint.write(tmp_path, network, NAMES, {})
    assert close(said_by(open_member(path), images), network.eval()(prepared).detach(), 1e-6)
    assert find_blueprint("mlp", images, NAMES).name == "mlp"
    texts = find_blueprint("text_cnn", ["one", "two"], ("a", "b"))
    assert texts.build(2, Key(0))(texts.prepare(["a text", "b"])).shape == (2, 2)
    rows = torch.randn(9, 5)
    assert find_blueprint("mlp", rows, ("a", "b")).prepare(rows).shape == (9, 5)


def test_functions_that_make_students(images: Tensor) -> None:
    blueprint = find_blueprint(Small, images, NAMES)
    assert (blueprint.name, blueprint.reads) == (f"{__name__}:Small", "images")
    with pytest.raises(ConfigError, match="is a lambda"):
        find_blueprint(lambda: Small(), images, NAMES)
    with pytest.raises(Exception, match=r"is no file or folder, no package.module:function and none of"):
        find_blueprint("resnet9", images, NAMES)
