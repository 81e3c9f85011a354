"""``fedfuse init``: files that run as they are, and are never in anybody's way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

import fedfuse
from fedfuse.core.errors import ConfigError
from fedfuse.experiment.config import validate
from fedfuse.experiment.finding import check_keys
from fedfuse.experiment.starter import columns_of, starter
from fedfuse.methods import METHODS
from tests.cli.test_cli import InProcess, only_sentence, settings
from tests.cli.test_cli import in_process as in_process

BRIEF = settings("federation.rounds=1", "training.epochs=1", "evaluation.pictures=false")
ROWS = 80


def visits(path: Path, header: str = "patient_id,age,Blood Pressure,hospital,diagnosis") -> Path:
    random = np.random.default_rng(0)
    rows = [f"{n},{random.integers(20, 90)},{random.uniform(80, 160):.1f},h{n % 3},{n % 2}" for n in range(ROWS)]
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_what_is_written_runs_as_it_is(tmp_path: Path, in_process: InProcess) -> None:
    done = in_process("init", "mine.yaml")
    assert done.returncode == 0, done.stderr
    assert "next     fedfuse run mine.yaml" in done.stdout
    ran = in_process("run", "mine.yaml", *BRIEF)
    assert ran.returncode == 0, ran.stderr
    folder = tmp_path / "runs" / "mine-epochs=1-feddf-seed0"
    assert (folder / "summary.json").is_file()


def test_nothing_that_is_there_is_overwritten(tmp_path: Path, in_process: InProcess) -> None:
    (tmp_path / "mine.yaml").write_text("dear")
    assert (
        only_sentence(in_process("init", "mine"))
        == "mine.yaml is there already and stays as it is; choose another name"
    )
    assert (tmp_path / "mine.yaml").read_text() == "dear"


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_starter_that_can_be_read(tmp_path: Path, method: str) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(starter("one", method=method))
    check_keys(file, [])
    config = validate(yaml.safe_load(file.read_text()))
    assert config.method.name == method
    if config.recipe.needs_source:
        assert config.data.public


@pytest.mark.parametrize("method", ["fedavg", "fedmd", "fedgkd-plus"])
def test_methods_with_needs_of_their_own_run(tmp_path: Path, in_process: InProcess, method: str) -> None:
    (tmp_path / "one.yaml").write_text(starter("one", data="blobs", method=method))
    done = in_process("run", "one.yaml", *BRIEF, "-q")
    assert done.returncode == 0, done.stderr


def test_the_columns_of_a_table_are_filled_in(tmp_path: Path, in_process: InProcess) -> None:
    visits(tmp_path / "visits.csv")
    assert in_process("init", "v", "--data", "visits.csv", "--method", "fedprox").returncode == 0
    data = yaml.safe_load((tmp_path / "v.yaml").read_text())["data"]
    assert data["label_column"] == "diagnosis"
    assert data["client_column"] == "hospital"
    assert data["ignore_columns"] == ["patient_id"]
    done = in_process("run", "v.yaml", *BRIEF)
    assert done.returncode == 0, done.stderr
    assert "3 clients" in done.stdout


def test_a_table_with_empty_cells_gets_a_starter_that_says_what_becomes_of_them(
    tmp_path: Path, in_process: InProcess
) -> None:
    rows = [f"{'' if row % 7 == 0 else row},{'ab'[row % 2]}" for row in range(120)]
    (tmp_path / "gaps.csv").write_text("\n".join(["age,label", *rows]) + "\n")
    assert in_process("init", "gaps", "--data", "gaps.csv", "--method", "fedavg").returncode == 0
    assert "empty_cells: fill" in (tmp_path / "gaps.yaml").read_text()
    assert in_process("run", "gaps.yaml", *BRIEF, "-q").returncode == 0


def test_columns_that_are_named_count_more_than_guesses(tmp_path: Path) -> None:
    file = visits(tmp_path / "visits.csv")
    said = yaml.safe_load(starter("v", file, "fedavg", label_column="hospital"))["data"]
    assert said["label_column"] == "hospital"
    assert "client_column" not in said
    with pytest.raises(ConfigError, match=r"--label-column: unknown column 'diagnose' \(did you mean 'diagnosis'\?\)"):
        starter("v", file, label_column="diagnose")


@pytest.mark.parametrize("name", ["yes", "a: b", "it's", "#x", "[1]", "1e5", "null", "ä ö"])
def test_any_name_of_a_column_survives_yaml(tmp_path: Path, name: str) -> None:
    file = tmp_path / "odd.csv"
    file.write_text(f'x,"{name}",z\n', encoding="utf-8")
    chosen = columns_of(file, "csv")[1]
    assert yaml.safe_load(starter("odd", file, label_column=chosen))["data"]["label_column"] == chosen


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_are_told_by_the_first_line(tmp_path: Path, separator: str) -> None:
    file = tmp_path / "table.csv"
    file.write_bytes(b"\xef\xbb\xbf" + separator.join(["a", "b c", "label"]).encode() + b"\n1" * 10)
    assert columns_of(file, "csv") == ["a", "b c", "label"]


def test_arrays_and_folders_of_images(tmp_path: Path, in_process: InProcess) -> None:
    random = np.random.default_rng(0)
    np.savez(tmp_path / "own.npz", x=random.normal(size=(60, 4)).astype("float32"), y=np.arange(60) % 3)
    for number in range(24):
        folder = tmp_path / "photos" / ("cat" if number % 2 else "dog")
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 255, (10 + number, 12, 3), dtype="uint8")).save(folder / f"{number}.png")
    for name, data in (("a", "own.npz"), ("b", "photos")):
        assert in_process("init", name, "--data", data, "--method", "fedavg").returncode == 0
        few = settings("partition={kind: iid, clients: 2}")
        done = in_process("run", f"{name}.yaml", *BRIEF, *few, "-q")
        assert done.returncode == 0, done.stderr


def test_data_that_cannot_be_read_is_refused_before_anything_is_written(tmp_path: Path, in_process: InProcess) -> None:
    (tmp_path / "bad.npz").write_bytes(b"nothing of the kind")
    (tmp_path / "one.csv").write_text("just one column\n1\n")
    (tmp_path / "empty.csv").touch()
    for name in ("bad.npz", "one.csv", "empty.csv", "missing.csv"):
        only_sentence(in_process("init", "x", "--data", name))
    assert not (tmp_path / "x.yaml").exists()


def test_the_same_from_python() -> None:
    assert yaml.safe_load(fedfuse.starter("mine", method="scaffold"))["method"] == "scaffold"
    with pytest.raises(ConfigError, match="give one of them"):
        fedfuse.starter(data="digits", task="image")
