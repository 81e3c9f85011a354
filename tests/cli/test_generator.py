"""``fedfuse generator`` as a person meets it, and a federation that learns from what the generator makes."""

from __future__ import annotations

import inspect
import json
import signal
import sys
from pathlib import Path

import pytest

from fedfuse.cli.generator import train
from fedfuse.parts.sources.generators import load_generator, training
from tests.cli.test_cli import QUICK, InProcess, in_process, only_sentence, settings

__all__ = ["in_process"]

TRAIN = ("generator", "train", "digits", "--out", "g.safetensors")
SMALL = ("--epochs", "3", "--hidden", "8", "--latent", "3")


def test_train_show_and_run(tmp_path: Path, in_process: InProcess) -> None:
    trained = in_process(*TRAIN, *SMALL)
    assert trained.returncode == 0, trained.stderr
    assert "epoch 3/3 loss" in trained.stdout
    assert "public share of digits (seed 0), 288 examples" in trained.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["g.safetensors"]

    shown = in_process("generator", "show", "g.safetensors", "--picture", "pictures/g.png", "--samples", "2")
    assert shown.returncode == 0, shown.stderr
    assert "images of shape 1x8x8, 10 classes" in shown.stdout
    assert (tmp_path / "pictures" / "g.png").read_bytes().startswith(b"\x89PNG")

    source = "source={kind: generator, file: g.safetensors, size: 150}"
    run = in_process("run", "digits", *settings(*QUICK, source), "--out", "run", "--quiet")
    assert run.returncode == 0, run.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["method"] == "feddf"
    assert len(summary["source"].pop("sha256")) == 64
    assert summary["source"] == {"name": "g.safetensors", "size": 150, "overlap": 0}


def test_an_experiments_generator_sees_its_public_share_only(tmp_path: Path, in_process: InProcess) -> None:
    for name, options in {"one": (), "same": (), "other": settings("seed=1")}.items():
        result = in_process(*TRAIN[:3], "--out", name, *SMALL, "--quiet", *options)
        assert (result.returncode, result.stdout) == (0, "")
    one, same, other = ((tmp_path / name).read_bytes() for name in ("one", "same", "other"))
    assert one == same
    assert one != other, "another seed keeps other examples public"
    assert load_generator(tmp_path / "one").card.examples == 288


def test_a_dataset_by_name(in_process: InProcess) -> None:
    result = in_process("generator", "train", "blobs", "--out", "b.safetensors", *SMALL)
    assert result.returncode == 0, result.stderr
    assert "blobs (training examples), 600 examples" in result.stdout
    shown = in_process("generator", "show", "b.safetensors", "--picture", "b.png")
    assert "a generator of features makes nothing that can be drawn" in only_sentence(shown)
    assert "features of shape 2, 3 classes" in in_process("generator", "show", "b.safetensors").stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "digitz", "--out", "new"], "unknown experiment or dataset 'digitz' (did you mean 'digits'?)"),
        (["train", "missing.yaml", "--out", "new"], "missing.yaml: No such file"),
        (["train", "blobs", "--out", "new", "--set", "seed=1"], "--set changes keys of an experiment"),
        (["train", "digits", "--out", "new", "--set", "data.public=0"], "set data.public above 0"),
        (["train", "digits", "--out", "there"], "there is already there; add --overwrite"),
        (["show", "missing"], "missing cannot be read"),
        (["show", "there"], "there is not a generator that fedfuse trained"),
    ],
    ids=str,
)
def test_mistakes(tmp_path: Path, in_process: InProcess, arguments: list[str], sentence: str) -> None:
    (tmp_path / "there").write_text("something")
    assert sentence in only_sentence(in_process("generator", *arguments))
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert (tmp_path / "there").read_text() == "something"


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("{kind: generator}", "source: name one generator: either file or callable"),
        ("{kind: generator, file: g}", "g cannot be read: No such file"),
        ("{kind: generator, callable: nowhere:f}", "nowhere cannot be imported"),
        ("{kind: folder}", "source.path is missing"),
        ("{kind: folder, path: photos}", "source.path: photos does not exist"),
    ],
)
def test_mistakes_in_a_source(in_process: InProcess, source: str, sentence: str) -> None:
    assert sentence in only_sentence(in_process("run", "digits", *settings(f"source={source}")))


def test_interrupted_training_goes_on_with_the_same_command(
    tmp_path: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert in_process(*TRAIN[:3], "--out", "whole", *SMALL, "--quiet").returncode == 0
    epoch = training._Training._epoch
    with monkeypatch.context() as patch:
        calls = iter([epoch, epoch, press_ctrl_c])
        patch.setattr(training._Training, "_epoch", lambda *arguments: next(calls)(*arguments))
        said = only_sentence(in_process(*TRAIN, *SMALL, "--quiet"))
    assert said == "interrupted; finished epochs are kept, go on with the same command"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.safetensors.partial", "whole"]
    assert in_process(*TRAIN, *SMALL, "--quiet").returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.safetensors", "whole"]
    assert (tmp_path / "g.safetensors").read_bytes() == (tmp_path / "whole").read_bytes()


def test_the_commands_defaults_are_those_of_the_settings() -> None:
    fields = {**training.GeneratorTraining.model_fields, **training.VaeSettings.model_fields}
    options = inspect.signature(train).parameters
    shared = fields.keys() & options.keys()
    assert shared == {"epochs", "batch_size", "learning_rate", "latent", "hidden", "channels", "seed"}
    assert {name: options[name].default for name in shared} == {name: fields[name].default for name in shared}


def press_ctrl_c(*_arguments: object) -> float:
    signal.raise_signal(signal.SIGINT)
    return 0.0


def test_a_module_in_the_current_folder_is_found(
    tmp_path: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "near_maker.py").write_text(
        "import torch\n\n\ndef noise(count, generator):\n    return torch.rand(count, 1, 8, 8, generator=generator)\n"
    )
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    source = "source={kind: generator, callable: 'near_maker:noise', size: 20}"
    result = in_process("run", "digits", *settings(*QUICK, source), "--out", "run", "--quiet")
    assert result.returncode == 0, result.stderr
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["source"]["name"] == "near_maker:noise"
