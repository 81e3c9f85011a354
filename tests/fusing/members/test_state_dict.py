"""Weights alone: unwrapped, loaded strictly, never unpickled."""

from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.fusing.members import open_member
from fedfuse.models import Classifier
from tests.fusing.members.asking import close, said_by
from tests.fusing.members.conftest import MEAN, STD

OPTIONS: dict[str, Any] = {
    "arch": {"arch": "mlp", "hidden": [6]},
    "shape": (3, 8, 8),
    "normalise": (MEAN, STD),
}


@pytest.fixture
def state(network: Classifier) -> dict[str, Tensor]:
    return dict(network.state_dict())


@pytest.mark.parametrize("wrapped", ["plain", "state_dict", "model", "module", "legacy"])
def test_every_wrapping_gives_the_same_voice(
    wrapped: str, state: dict[str, Tensor], saved: Path, images: Tensor, tmp_path: Path
) -> None:
    path, legacy = tmp_path / "net.pt", wrapped == "legacy"
    content: Any = {"module": {f"module.{name}": tensor for name, tensor in state.items()}}.get(wrapped, state)
    content = {wrapped: state, "epoch": 3} if wrapped in ("state_dict", "model") else content
    torch.save(content, path, _use_new_zipfile_serialization=not legacy)
    member = open_member(path, **OPTIONS)
    assert torch.equal(said_by(member, images), said_by(open_member(saved), images))
    assert (member.about.format, member.about.classes, member.about.class_names) == ("state dict", 3, None)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(
    dtype: torch.dtype, state: dict[str, Tensor], network: Classifier, images: Tensor, tmp_path: Path
) -> None:
    save_file({f"module.{name}": tensor.to(dtype) for name, tensor in state.items()}, tmp_path / "net.safetensors")
    member = open_member(tmp_path / "net.safetensors", **OPTIONS)
    assert member.about.dtype == str(dtype).removeprefix("torch.")
    network.load_state_dict({name: tensor.to(dtype).float() for name, tensor in state.items()})
    expected = said_by(open_member(network), images)
    assert close(said_by(member, images), expected)
    assert said_by(member, images).dtype == torch.float32


def test_own_code_named_by_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, images: Tensor) -> None:
    (tmp_path / "my_nets.py").write_text(
        "from torch import nn\n"
        "def net(num_classes):\n    return nn.Sequential(nn.Flatten(), nn.Linear(192, 5), nn.ReLU(), "
        "nn.Linear(5, num_classes))\n"
    )
    monkeypatch.chdir(tmp_path)
    theirs = nn.Sequential(nn.Flatten(), nn.Linear(192, 5), nn.ReLU(), nn.Linear(5, 4)).eval()
    torch.save(theirs.state_dict(), "net.pth")
    member = open_member("net.pth", arch="my_nets:net", shape=(3, 8, 8))
    with torch.no_grad():
        assert close(said_by(member, images), theirs(images / 255))
    assert member.weights is not None
    assert set(member.weights) == set(theirs.state_dict())
    assert "scaled to 0..1" in member.about.notes[0]


def test_names_that_do_not_fit(state: dict[str, Tensor], tmp_path: Path) -> None:
    state["head.weight"] = state.pop("classifier.weight")
    save_file(state, tmp_path / "net.safetensors")
    with pytest.raises(ConfigError, match=r"it needs 'classifier.weight'; it does not know 'head.weight'"):
        open_member(tmp_path / "net.safetensors", **OPTIONS)


def test_an_architecture_is_needed_and_must_be_known(state: dict[str, Tensor], tmp_path: Path) -> None:
    save_file(state, tmp_path / "net.safetensors")
    with pytest.raises(ConfigError, match="holds weights alone; say which network they belong to"):
        open_member(tmp_path / "net.safetensors")
    with pytest.raises(ConfigError, match="unknown architecture 'resnet9'"):
        open_member(tmp_path / "net.safetensors", arch="resnet9")
    with pytest.raises(ConfigError, match="unknown normalise 'imagnet'"):
        open_member(tmp_path / "net.safetensors", **{**OPTIONS, "normalise": "imagnet"})


def test_another_architecture_is_refused_before_it_costs_memory(state: dict[str, Tensor], tmp_path: Path) -> None:
    save_file(state, tmp_path / "net.safetensors")
    with pytest.raises(ConfigError, match="much larger than what the file holds"):
        open_member(tmp_path / "net.safetensors", arch={"arch": "mlp", "hidden": [10**6]}, shape=(3, 8, 8))


class _Dangerous:
    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.place),)


def test_a_pickle_is_never_run(tmp_path: Path) -> None:
    for name, save in (("zip.pt", torch.save), ("bare.bin", lambda value, path: path.write_bytes(pickle.dumps(value)))):
        save({"state_dict": _Dangerous(tmp_path / "ran")}, tmp_path / name)
        with pytest.raises(DataError, match="holds Python objects and not only weights"):
            open_member(tmp_path / name, **OPTIONS)
    assert not (tmp_path / "ran").exists()


def test_whole_models_and_other_things_are_refused(network: Classifier, tmp_path: Path) -> None:
    torch.save(network, tmp_path / "whole.pt")
    with pytest.raises(DataError, match=r"save model.state_dict\(\) instead of the model"):
        open_member(tmp_path / "whole.pt", **OPTIONS)
    torch.save({"epoch": 3}, tmp_path / "none.pt")
    with pytest.raises(DataError, match="holds no weights by name"):
        open_member(tmp_path / "none.pt", **OPTIONS)
    torch.save({"a": torch.zeros(1).expand(10**12)}, tmp_path / "wide.pt")
    with pytest.raises(DataError, match="claims to be larger than what is stored"):
        open_member(tmp_path / "wide.pt", **OPTIONS)


def test_a_compressed_archive_is_refused(state: dict[str, Tensor], tmp_path: Path) -> None:
    torch.save(state, tmp_path / "net.pt")
    bombs = zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(tmp_path / "net.pt") as source, bombs as bomb:
        for one in source.infolist():
            bomb.writestr(one.filename, source.read(one) + bytes(1_000_000))
    with pytest.raises(DataError, match="is compressed, as torch never writes weights"):
        open_member(tmp_path / "bomb.pt", **OPTIONS)


def test_truncated_and_not_finite(state: dict[str, Tensor], images: Tensor, tmp_path: Path) -> None:
    torch.save(state, tmp_path / "net.pt")
    (tmp_path / "half.pt").write_bytes((tmp_path / "net.pt").read_bytes()[:2000])
    with pytest.raises(DataError, match="damaged archive"):
        open_member(tmp_path / "half.pt", **OPTIONS)
    state["classifier.bias"] = torch.full((3,), float("inf"))
    save_file(state, tmp_path / "inf.safetensors")
    with pytest.raises(DataError, match=r"'classifier.bias' holds what is not a finite number"):
        said_by(open_member(tmp_path / "inf.safetensors", **OPTIONS), images)
