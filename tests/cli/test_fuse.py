"""``fedfuse fuse`` in a terminal and in a file: what it prints, and how it ends."""

from __future__ import annotations

import pytest

from tests.cli.test_cli import in_process  # noqa: F401
from tests.fusing.conftest import digits, hospitals  # noqa: F401

QUICK = ["--set", "steps=20", "--set", "threads=1"]


@pytest.fixture
def run(in_process):  # noqa: F811
    """The exit code, and all that was printed, in one line of blanks."""

    def told(*words):
        done = in_process("fuse", *map(str, words))
        return done.returncode, " ".join(done.stdout.split()), " ".join(done.stderr.split())

    return told


@pytest.fixture
def files(hospitals, digits, tmp_path):  # noqa: F811
    import numpy as np

    np.savez(tmp_path / "images.npz", digits.public.numpy())
    np.savez(tmp_path / "labelled.npz", x=digits.test[0].numpy(), y=digits.test[1].numpy())
    return {
        **hospitals,
        "data": tmp_path / "images.npz",
        "examples": tmp_path / "labelled.npz",
        "out": tmp_path / "out",
    }


def test_a_fusion(files, run):
    code, out, _ = run(
        files["a"], f"other={files['c']}", "--data", files["data"], "--examples",
        files["examples"], "--out", files["out"], *QUICK,
    )  # fmt: skip
    assert code == 0
    assert "other fedfuse cnn2" in out
    assert "student learns 20/20" in out
    assert "the student begins as" in out
    assert (files["out"] / "model.safetensors").exists()
    assert f"fedfuse fuse {files['a']} other={files['c']} --data" in (files["out"] / "README.md").read_text()


def test_check_shows_all_problems_and_ends_with_2(files, run, tmp_path):
    code, out, err = run(files["a"], tmp_path / "no", tmp_path / "nor", "--check")
    assert code == 2
    assert out.count("problem:") == 2
    assert "1 more" in err
    assert not files["out"].exists()


@pytest.mark.parametrize("options", [(), ("--check",), ("--quiet",)], ids=" ".join)
def test_no_model_at_all_is_a_sentence_and_no_table(run, tmp_path, options):
    code, out, err = run(tmp_path / "no", tmp_path / "nor", *options)
    assert code == 2
    assert "no" in out + err
    assert "─" not in out


def test_check_without_problems(files, run):
    code, out, _ = run(files["a"], files["b"], "--data", files["data"], "--check")
    assert code == 0
    assert "note: look at the licences" in out
    assert "problem" not in out


def test_a_dry_run_writes_nothing(files, run):
    code, out, _ = run(files["a"], files["c"], "--data", files["data"], "--out", files["out"], "--dry-run", *QUICK)
    assert code == 0
    assert "together about" in out
    assert "memory about" in out
    assert not files["out"].exists()


def test_a_merge(files, run):
    code, out, _ = run(
        files["a"], files["b"], "--method", "ties", "--base", files["a"], "--set",
        "merge={density: 0.5}", "--out", files["out"],
    )  # fmt: skip
    assert code == 0
    assert "ties of the weights of 2 models" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--set", "steps"], "--set 'steps': write a name, an equals sign and a value"),
        (["--about", "arch=mlp"], "--about arch: write MODEL.KEY=VALUE"),
        (["--map", "cat=dog"], "--map cat: write MODEL:THEIRS=OURS"),
        (["--method", "fedav"], "unknown method 'fedav'"),
        (["--data", "nowhere"], "unknown file, folder or dataset 'nowhere'"),
        (["--method", "ties"], "ties counts from the model that all were trained from; say which is the base"),
    ],
)
def test_one_sentence(words, sentence, files, run):
    code, _, err = run(files["a"], files["b"], "--out", files["out"], *words)
    assert code == 2
    assert sentence in err


def test_two_models_of_one_name(files, run):
    code, _, err = run(f"x={files['a']}", f"x={files['b']}")
    assert (code, "two models are called x" in err) == (2, True)
