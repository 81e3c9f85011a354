"""TorchScript programs: our own exports and those of others."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.fusing.members import open_member
from fedfuse.models import Classifier
from fedfuse.models.export import export
from tests.fusing.members.asking import close, said_by
from tests.fusing.members.conftest import NAMES


def test_our_own_export_needs_no_options(saved: Path, network: Classifier, images: Tensor, tmp_path: Path) -> None:
    export(network, tmp_path / "net.pt")
    member = open_member(tmp_path / "net.pt")
    assert close(said_by(member, images), said_by(open_member(saved), images))
    assert (member.about.class_names, member.about.shape, member.about.format) == (NAMES, (3, 8, 8), "TorchScript")
    assert member.weights is None
    assert member.blueprint is None


@pytest.fixture
def script(tmp_path: Path, images: Tensor) -> tuple[Path, nn.Module]:
    network = nn.Sequential(nn.Flatten(), nn.Linear(192, 5), nn.Dropout(0.5)).eval()
    path = tmp_path / "net.ts"
    torch.jit.save(torch.jit.trace(network, images[:2] / 255), path)
    return path, network


def test_programs_of_others(script: tuple[Path, nn.Module], images: Tensor) -> None:
    path, network = script
    member = open_member(path, normalise="half")
    with torch.no_grad():
        assert close(said_by(member, images), network((images / 255 - 0.5) / 0.5))
    assert member.about.classes == 5


class _Bytes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1)[:, :4].float()


def test_programs_that_read_bytes(images: Tensor, tmp_path: Path) -> None:
    torch.jit.save(torch.jit.trace(_Bytes(), images[:2]), tmp_path / "net.pt")
    member = open_member(tmp_path / "net.pt", normalise="raw", classes=4)
    assert torch.equal(said_by(member, images), images.flatten(1)[:, :4].float())
    assert member.about.notes == ()


def test_bad_programs(script: tuple[Path, nn.Module], images: Tensor, tmp_path: Path) -> None:
    path, _ = script
    with pytest.raises(ConfigError, match="should give a row of 9 logits"):
        said_by(open_member(path, classes=9), images)
    with pytest.raises(ConfigError, match="net cannot answer: RuntimeError: mat1 and mat2 shapes cannot be multiplied"):
        said_by(open_member(path), images[:, :, :4])
    bomb = tmp_path / "bomb.ts"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as target:
        for one in source.infolist():
            target.writestr(one.filename, source.read(one))
        target.writestr("net/code/large.py", bytes(101_000_000))
    with pytest.raises(DataError, match="is compressed, as torch never writes"):
        open_member(bomb)
    broken = tmp_path / "broken.ts"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(broken, "w") as target:
        for one in source.infolist():
            target.writestr(one.filename, source.read(one)[:-3] if one.filename.endswith(".py") else source.read(one))
    with pytest.raises(DataError, match="cannot be loaded as TorchScript"):
        open_member(broken)
