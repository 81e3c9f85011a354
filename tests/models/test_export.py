"""An exported file answers raw inputs as the model does, in programs that know nothing of fedfuse."""

from __future__ import annotations

import builtins
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter
from safetensors.torch import load_file
from torch import nn

import fedfuse
from fedfuse.cli.export import export as export_command
from fedfuse.core.errors import ConfigError, DataError, FedfuseError
from fedfuse.core.randomness import Key
from fedfuse.core.text import TextShape
from fedfuse.core.weights import Weights
from fedfuse.data.raw import RawImages, RawNumbers, RawTexts
from fedfuse.data.tokens import TextSettings
from fedfuse.experiment.run import Experiment
from fedfuse.models import AnyArchitecture, Classifier, create
from fedfuse.models.export import FORMATS, TOLERANCE, export
from fedfuse.models.interface import Interface
from fedfuse.models.saved import load_model, save_model
from tests.helpers import tiny_config

GRAY, COLOUR, ROWS, TEXT = (1, 8, 8), (3, 16, 16), (4,), TextShape(length=9, vocabulary=50)
CLASSES = ("cat", "dog", "élan")
INPUTS: dict[tuple[int, ...], Any] = {
    GRAY: RawImages(mean=(0.3,), std=(0.4,)),
    COLOUR: RawImages(mean=(0.3, 0.4, 0.5), std=(0.2, 0.3, 0.4)),
    ROWS: RawNumbers(mean=(1.0, 20.0, -3.0, 1e4), std=(0.1, 5.0, 1.0, 2e3), columns=("a", "b", "c", "d")),
    TEXT: RawTexts(text=TextSettings(max_length=9, vocabulary=50)),
}
CASES: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "rows": ({"arch": "mlp"}, ROWS),
    "head": ({"arch": "mlp", "projection_head": 5}, GRAY),
    "cnn": ({"arch": "cnn2"}, GRAY),
    "batch norm": ({"arch": "resnet8", "width": 4}, COLOUR),
    "group norm": ({"arch": "resnet8", "width": 4, "norm": "group", "groups": 2}, COLOUR),
    "channel shuffle": ({"arch": "shufflenetv2", "width": 16, "last": 32}, COLOUR),
    "text cnn": ({"arch": "text_cnn", "embedding": 6, "channels": 4}, TEXT),
    "transformer": ({"arch": "text_transformer", "width": 8, "heads": 2, "layers": 1}, TEXT),
    "own": ({"arch": "own", "callable": "tests.models.foreign:Vision"}, GRAY),
}


def saved(folder: Path, case: str, **interface: Any) -> Classifier:
    """A model with random weights, whose BatchNorm has seen inputs."""
    raw, shape = CASES[case]
    architecture = TypeAdapter(AnyArchitecture).validate_python(raw)
    model = create(architecture, shape, len(CLASSES), Key(1))
    if not isinstance(shape, TextShape):
        random = torch.Generator().manual_seed(0)
        for _ in range(20):
            model.train()(torch.randn(16, *shape, generator=random))
    weights = Weights.of(model)
    known = Interface(inputs=INPUTS[shape], class_names=CLASSES, **interface)
    save_model(folder / "m.safetensors", architecture, shape, len(CLASSES), weights, known, model)
    return load_model(folder / "m.safetensors", trust_own_code=True)


def raw_inputs(shape: tuple[int, ...], count: int) -> np.ndarray:
    random = np.random.default_rng(count)
    if isinstance(shape, TextShape):
        words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
        return np.array([" ".join(random.choice(words, random.integers(1, 12))) for _ in range(count)])
    if shape == ROWS:
        return (random.standard_normal((count, 4)) * [0.1, 5, 1, 2e3] + [1, 20, -3, 1e4]).astype(np.float32)
    return random.integers(0, 256, (count, *shape), dtype=np.uint8)


def fed(raw: np.ndarray) -> np.ndarray:
    """As the graph wants them: raw, or token numbers."""
    return INPUTS[TEXT].read(raw, TEXT).long().numpy() if raw.dtype.kind == "U" else raw


@pytest.mark.parametrize("case", list(CASES))
def test_onnx_answers_as_the_model_does_for_batches_of_any_size(tmp_path, case):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    model = saved(tmp_path, case)
    done = export(model, tmp_path / "m.onnx")
    assert done.difference <= TOLERANCE
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    for count in (1, 2, 33):
        raw = raw_inputs(CASES[case][1], count)
        logits, probabilities = session.run(["logits", "probabilities"], {"inputs": fed(raw)})
        np.testing.assert_allclose(probabilities, model.predict_proba(raw), atol=1e-5)
        np.testing.assert_allclose(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), probabilities, atol=1e-5)
    assert np.ptp(probabilities, axis=0).max() > 1e-3, "inputs make no difference"
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["classes"]) == list(CLASSES)
    assert about["inputs"] == done.reads


@pytest.mark.parametrize("case", list(CASES))
def test_torchscript_answers_as_the_model_does_for_batches_of_any_size(tmp_path, case):
    model = saved(tmp_path, case)
    done = export(model, tmp_path / "m.pt")
    assert done.difference <= TOLERANCE
    about = {"classes": "", "inputs": ""}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        script = torch.jit.load(tmp_path / "m.pt", _extra_files=about)
    for count in (1, 2, 33):
        raw = raw_inputs(CASES[case][1], count)
        logits, probabilities = script(torch.from_numpy(fed(raw)))
        np.testing.assert_allclose(probabilities.detach(), model.predict_proba(raw), atol=1e-5)
        assert torch.equal(logits.softmax(dim=1), probabilities)
    assert json.loads(about["classes"]) == list(CLASSES)


@pytest.mark.parametrize("case", list(CASES))
def test_weights_alone_are_a_state_dict(tmp_path, case):
    model = saved(tmp_path, case)
    assert export(model, tmp_path / "w.safetensors").difference == 0
    found = load_file(tmp_path / "w.safetensors")
    if case == "own":
        from tests.models.foreign import Vision

        plain: nn.Module = Vision(len(CLASSES)).eval()
        plain.load_state_dict(found)
        images = torch.rand(2, *GRAY)
        assert torch.equal(plain(images), model(images))
    else:
        other = create(TypeAdapter(AnyArchitecture).validate_python(CASES[case][0]), CASES[case][1], 3, Key(2))
        other.load_state_dict(found)
        assert Weights.of(other).equals(Weights.of(model))


def test_the_model_is_left_as_it_was(tmp_path):
    model = saved(tmp_path, "batch norm")
    before = Weights.of(model)
    model.train()
    export(model, tmp_path / "m.pt")
    assert model.training
    assert Weights.of(model).equals(before)


def test_a_file_that_answers_otherwise_is_not_left_behind(tmp_path, monkeypatch):
    from fedfuse.models.export import torchscript

    def shifted(self: Any, path: Path) -> Any:
        def ask(inputs: torch.Tensor) -> Any:
            logits, probabilities = opened(self, path)(inputs)
            return logits, probabilities + 0.01

        return ask

    opened = torchscript.TorchScript.opened
    monkeypatch.setattr(torchscript.TorchScript, "opened", shifted)
    model = saved(tmp_path, "cnn")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(
        DataError, match=r"m.pt was not written: .* differ from the model's by 1.0e-02, more than 1e-04"
    ):
        export(model, tmp_path / "m.pt")
    assert sorted(tmp_path.iterdir()) == before


def test_a_network_that_reads_padding_cannot_be_written(tmp_path):
    """A graph gets whole rows of tokens and the network short ones; who sees the difference is found out."""
    folder = tmp_path
    architecture = TypeAdapter(AnyArchitecture).validate_python(
        {"arch": "own", "callable": "tests.models.foreign:Lengths"}
    )
    model = create(architecture, TEXT, len(CLASSES), Key(1))
    known = Interface(inputs=INPUTS[TEXT], class_names=CLASSES)
    save_model(folder / "m.safetensors", architecture, TEXT, len(CLASSES), Weights.of(model), known, model)
    with pytest.raises(DataError, match=r"m.pt was not written: its answers would differ"):
        export(load_model(folder / "m.safetensors", trust_own_code=True), folder / "m.pt")


@pytest.mark.parametrize("suffix", list(FORMATS))
def test_an_existing_file_is_replaced_only_if_asked(tmp_path, suffix):
    model = saved(tmp_path, "rows")
    file = tmp_path / f"other{suffix}"
    file.write_text("precious")
    with pytest.raises(ConfigError, match="exists already; add overwrite=True"):
        export(model, file)
    assert file.read_text() == "precious"
    if suffix == ".pt":
        export(model, file, overwrite=True)
        assert file.read_bytes().startswith(b"PK")


def test_what_cannot_be_exported_says_why(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match=r"the format is told by the suffix; give a name that ends in \.onnx, \.pt"):
        export(saved(tmp_path, "rows"), tmp_path / "m.h5")
    by_batch = saved(tmp_path, "batch norm", batch_statistics=50)
    with pytest.raises(DataError, match=r"\(federation.batch_norm: batch\), which no exported file can"):
        export(by_batch, tmp_path / "m.pt")
    fresh = create(TypeAdapter(AnyArchitecture).validate_python({"arch": "mlp"}), ROWS, 3, Key(0))
    with pytest.raises(DataError, match="file has no normalisation"):
        export(fresh, tmp_path / "m.pt")
    without("onnxruntime", monkeypatch)
    with pytest.raises(FedfuseError, match=r"^export to ONNX needs an optional package: .*'fedfuse\[export\]'$"):
        export(saved(tmp_path, "rows"), tmp_path / "m.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors"]


def without(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a package were not installed."""
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)


def test_a_network_that_torch_cannot_write_says_so_in_one_sentence(tmp_path, monkeypatch):
    def broken(*_args: Any, **_options: Any) -> None:
        raise RuntimeError("no such operation\nsecond line")

    monkeypatch.setattr(torch.jit, "trace", broken)
    with pytest.raises(
        DataError, match=r"^the network cannot be written as TorchScript: .*: no such operation \(.*, line \d+\)$"
    ):
        export(saved(tmp_path, "rows"), tmp_path / "m.pt")


class TestCommand:
    @pytest.fixture(scope="class")
    @classmethod
    def folder(cls, tmp_path_factory):
        place = tmp_path_factory.mktemp("command")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fedfuse.experiment.run.draw_run", lambda *_args, **_options: None)
            Experiment(tiny_config("fedavg")).run(place / "run")
            two = {"a": {"arch": "mlp", "hidden": [4]}, "b": {"arch": "mlp", "hidden": [5]}}
            Experiment(tiny_config("feddf", models=two)).run(place / "two")
            Experiment(tiny_config("local-only")).run(place / "clients")
        return place

    def run(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(Path(fedfuse.__file__).parents[1])}
        command = [sys.executable, "-m", "fedfuse", "export", *arguments]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=environment)

    @pytest.mark.parametrize("file", [pytest.param("m.onnx", marks=pytest.mark.long), "m.pt"])
    def test_says_what_it_wrote_and_nothing_of_torchs_affairs(self, folder, file):
        pytest.importorskip("onnxruntime")
        done = self.run(folder, "run", "--to", file)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        lines = done.stdout.splitlines()
        assert lines[:2] == [f"file     {file}", "reads    inputs: float32 N x 2"]
        assert lines[2] == "gives    logits, probabilities: float32 N x 3"
        assert lines[3].startswith("checked  largest difference from the model ")
        assert len(lines) == 4
        assert (folder / file).exists()

    @pytest.mark.parametrize(
        ("source", "name", "sentence"),
        [
            ("two", None, r"two has the models a, b; choose one with model=$"),
            ("two", "aa", r"^unknown model 'aa' \(did you mean 'a'\?\)$"),
            ("clients", None, r"clients has no model of the server; choose a client's with --client$"),
            ("nowhere", None, r"nowhere does not exist; give the folder of a run, or the file of a model$"),
            ("run/final/mlp.safetensors", "mlp", r"^model= chooses among the models of a run, but"),
        ],
    )
    def test_mistakes_are_one_sentence(self, folder, source, name, sentence):
        with pytest.raises(FedfuseError, match=sentence):
            export_command(folder / source, folder / "x.pt", name)
        assert not (folder / "x.pt").exists()

    @pytest.mark.parametrize(("source", "name"), [("two", "b"), ("clients/final/clients/0.safetensors", None)])
    def test_takes_a_file_or_one_of_several_models(self, folder, tmp_path, source, name, capsys):
        export_command(folder / source, tmp_path / "y.pt", name)
        assert (tmp_path / "y.pt").exists()
        assert "gives    logits, probabilities: float32 N x 3" in capsys.readouterr().out


def test_a_model_of_ours_is_never_replaced_by_its_bare_weights(tmp_path):
    model, made = saved(tmp_path, "rows"), tmp_path / "m.safetensors"
    before = made.read_bytes()
    with pytest.raises(ConfigError, match="is a model of fedfuse, of which bare weights would leave little"):
        export(model, made, overwrite=True)
    assert made.read_bytes() == before
    for overwrite in (False, True):
        export(model, tmp_path / "weights.safetensors", overwrite)
