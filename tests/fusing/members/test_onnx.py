"""ONNX graphs: our own exports, those of others, and hostile ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.fusing.members import find_blueprint, open_member
from fedfuse.models import Classifier
from fedfuse.models.export import export
from tests.fusing.members.asking import close, said_by
from tests.fusing.members.conftest import NAMES

onnx: Any = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
WEIGHT = np.random.default_rng(0).normal(size=(192, 4)).astype(np.float32) / 10


def graph(
    path: Path,
    shape: list[Any],
    *,
    dtype: int = 1,
    ending: str = "Identity",
    external: str | None = None,
    extra_input: bool = False,
    opset: int = 17,
) -> Path:
    """A linear classifier of 4 classes, written by hand."""
    helper = onnx.helper
    weight = onnx.numpy_helper.from_array(WEIGHT, "weight")
    if external is not None:
        weight.ClearField("raw_data")
        weight.data_location = onnx.TensorProto.EXTERNAL
        entry = weight.external_data.add()
        entry.key, entry.value = "location", external
    nodes = [
        helper.make_node("Cast", ["x"], ["floats"], to=1),
        helper.make_node("Flatten", ["floats"], ["flat"]),
        helper.make_node("MatMul", ["flat", "weight"], ["sums"]),
        helper.make_node(ending, ["sums"], ["scores"]),
    ]
    inputs = [helper.make_tensor_value_info("x", dtype, shape)]
    if extra_input:
        inputs.append(helper.make_tensor_value_info("mask", 1, [1]))
        nodes.append(helper.make_node("Identity", ["mask"], ["unused"]))
    outputs = [helper.make_tensor_value_info("scores", 1, [shape[0], 4])]
    model = helper.make_model(
        helper.make_graph(nodes, "linear", inputs, outputs, [weight]),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=9,
    )
    path.write_bytes(model.SerializeToString())
    return path


def by_hand(values: Tensor) -> Tensor:
    return torch.from_numpy(values.flatten(1).numpy() @ WEIGHT)


def test_our_own_export_needs_no_options(saved: Path, network: Classifier, images: Tensor, tmp_path: Path) -> None:
    export(network, tmp_path / "net.onnx")
    member = open_member(tmp_path / "net.onnx")
    assert close(said_by(member, images), said_by(open_member(saved), images))
    about = member.about
    assert (about.class_names, about.shape, about.classes, about.notes) == (NAMES, (3, 8, 8), 3, ())
    with pytest.raises(ConfigError, match="can be asked but not trained"):
        find_blueprint(member, images, NAMES)


def test_floats_are_normalised_as_the_caller_says(images: Tensor, tmp_path: Path) -> None:
    path = graph(tmp_path / "net.onnx", ["N", 3, 8, 8])
    member = open_member(path, normalise="half")
    assert close(said_by(member, images), by_hand((images / 255 - 0.5) / 0.5))
    assert torch.equal(said_by(member, images), said_by(open_member(path, normalise="half"), images))
    assert "scaled to 0..1" in open_member(path).about.notes[0]
    assert (member.about.classes, member.about.parameters, member.about.dtype) == (4, WEIGHT.size, "float32")


def test_bytes_go_in_as_they_are(images: Tensor, tmp_path: Path) -> None:
    path = graph(tmp_path / "net.onnx", ["N", 3, 8, 8], dtype=2)
    assert close(said_by(open_member(path), images), by_hand(images.float()), 1e-3)
    assert open_member(path).about.notes == ()
    with pytest.raises(ConfigError, match="reads bytes and normalises them itself"):
        open_member(path, normalise="half")


def test_a_fixed_batch_and_channels_last(images: Tensor, tmp_path: Path) -> None:
    fixed = graph(tmp_path / "fixed.onnx", [16, 3, 8, 8])
    assert close(said_by(open_member(fixed), images), by_hand(images / 255))
    last = graph(tmp_path / "last.onnx", ["N", 8, 8, 3])
    assert close(said_by(open_member(last), images), by_hand((images / 255).permute(0, 2, 3, 1)))


@pytest.mark.parametrize("number", [0, 2**40])
def test_a_number_of_inputs_that_cannot_be_is_refused(number: int, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"reads {number} inputs at a time, and not 1 to 1024"):
        open_member(graph(tmp_path / "net.onnx", [number, 3, 8, 8]))


def test_probabilities_become_their_logarithms(images: Tensor, tmp_path: Path) -> None:
    path = graph(tmp_path / "net.onnx", ["N", 3, 8, 8], ending="Softmax")
    member = open_member(path)
    assert close(said_by(member, images), by_hand(images / 255).log_softmax(dim=1), 1e-4)
    assert "Softmax" in member.about.notes[-1]
    assert close(said_by(open_member(path, gives="logits"), images), by_hand(images / 255).softmax(dim=1), 1e-4)


def test_rows_of_numbers(tmp_path: Path) -> None:
    rows = torch.randn(5, 192, generator=torch.Generator().manual_seed(0))
    member = open_member(graph(tmp_path / "net.onnx", ["N", 192]))
    assert (member.about.reads, member.about.shape) == ("numbers", (192,))
    assert close(said_by(member, rows), by_hand(rows))


def test_external_data(images: Tensor, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "weight.bin").write_bytes(WEIGHT.tobytes())
    path = graph(folder / "net.onnx", ["N", 3, 8, 8], external="weight.bin")
    member = open_member(path)
    assert close(said_by(member, images), by_hand(images / 255))
    (folder / "weight.bin").write_bytes((WEIGHT + 1).tobytes())
    assert open_member(path).about.sha256 != member.about.sha256
    (folder / "weight.bin").rename(tmp_path / "weight.bin")
    with pytest.raises(DataError, match=r"keeps tensors in weight.bin, which does not lie beside it"):
        open_member(path)
    for place in ("../weight.bin", str(tmp_path / "weight.bin")):
        with pytest.raises(DataError, match="leads out of"):
            open_member(graph(folder / "net.onnx", ["N", 3, 8, 8], external=place))


def test_broken_and_unfit_graphs(images: Tensor, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    whole = graph(path, ["N", 3, 8, 8]).read_bytes()
    path.write_bytes(whole[:-40])
    with pytest.raises(DataError, match="is no ONNX file"):
        open_member(path)
    path.write_bytes(b"")
    with pytest.raises(DataError, match="holds no ONNX graph"):
        open_member(path)
    with pytest.raises(DataError, match=r"reads 2 inputs \(x, mask\)"):
        open_member(graph(path, ["N", 3, 8, 8], extra_input=True))
    with pytest.raises(DataError, match="the numbers of tokens and not texts"):
        open_member(graph(path, ["N", 192], dtype=7))
    with pytest.raises(DataError, match="cannot be run by onnxruntime"):
        open_member(graph(path, ["N", 3, 8, 8], opset=9999))
    with pytest.raises(DataError, match="cannot be run by onnxruntime"):
        open_member(graph(path, ["N", 3, 8, 8], ending="NoSuchOperation"))
    with pytest.raises(ConfigError, match=r"reads inputs of \(3, 8, 8\), and not of \(3, 9, 9\)"):
        open_member(graph(path, ["N", 3, 8, 8]), shape=(3, 9, 9))
    with pytest.raises(ConfigError, match="should give a row of 7 logits"):
        said_by(open_member(path, classes=7), images)
