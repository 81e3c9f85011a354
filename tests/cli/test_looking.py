"""``fedfuse show``, ``table``, ``plot`` and ``report`` as a person at a terminal meets them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.report.runs import Made, write_run
from typer.testing import CliRunner

import fedfuse
from fedfuse.cli.app import app
from fedfuse.core.asked import asked_by_command_line

SHOWN = CliRunner()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for seed in range(3):
        write_run(tmp_path / "runs" / f"a{seed}", Made("fedavg", seed, rounds=30))
        write_run(tmp_path / "runs" / f"b{seed}", Made("feddf", seed, rounds=30, level=0.9))
    return tmp_path / "runs"


def obeyed(*words: object) -> str:
    result = SHOWN.invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def refused(*words: object) -> str:
    result = SHOWN.invoke(app, [str(word) for word in words])
    assert isinstance(result.exception, fedfuse.FedfuseError)
    with asked_by_command_line():
        return str(result.exception)


def test_commands_print_what_python_returns(runs: Path) -> None:
    comparison = fedfuse.load_runs(runs)
    assert obeyed("show", runs).split() == comparison.describe().split()
    assert obeyed("show", runs / "a0").split() == fedfuse.load_run(runs / "a0").describe().split()
    for format in ("text", "md", "latex", "csv", "json"):
        assert obeyed("table", runs, "--format", format) == comparison.table(format)  # type: ignore[arg-type]
    curves = obeyed("table", runs, "--format", "csv", "--curves")
    assert curves == comparison.table("csv", curves=True)


def test_the_file_says_which_kind_of_table_or_picture_it_is(runs: Path, tmp_path: Path) -> None:
    obeyed("table", runs, "--out", tmp_path / "table.tex")
    assert (tmp_path / "table.tex").read_text() == fedfuse.load_runs(runs).table("latex")
    said = obeyed("plot", runs, "--x", "bytes", "--out", tmp_path / "curves.pdf")
    assert said == f"picture  {tmp_path / 'curves.pdf'}\n"
    assert (tmp_path / "curves.pdf").read_bytes().startswith(b"%PDF")
    assert obeyed("report", runs, "--out", tmp_path / "report.html") == f"report   {tmp_path / 'report.html'}\n"
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(("command", "ending"), [("table", "md"), ("plot", "png"), ("report", "html")])
def test_a_file_that_is_there_is_replaced_only_if_that_is_said(
    runs: Path, tmp_path: Path, command: str, ending: str
) -> None:
    out = tmp_path / f"mine.{ending}"
    out.write_text("my thesis")
    said = refused(command, runs, "--out", out)
    assert "is there already; choose another --out, or replace it with --overwrite" in said
    assert out.read_text() == "my thesis"
    obeyed(command, runs, "--out", out, "--overwrite")
    assert out.read_bytes() != b"my thesis"
    assert "is a folder; give the name of a file" in refused(command, runs, "--out", tmp_path)


@pytest.mark.parametrize("command", ["show", "table", "plot", "report"])
def test_what_is_not_there_is_a_sentence_before_anything_heavy_is_imported(command: str, tmp_path: Path) -> None:
    script = (
        "import sys\nfrom fedfuse.cli import main\n"
        f"sys.argv = ['fedfuse', {command!r}, 'nowhere']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    print(end.code, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=100)
    assert done.stdout.split() == ["2", "False"]
    assert done.stderr == "fedfuse: nowhere does not exist; give the folder of a run, or one that holds several\n"


def test_damaged_runs_are_told_beside_a_table_for_programs(runs: Path) -> None:
    (runs / "a0" / "summary.json").write_text("{")
    result = SHOWN.invoke(app, ["table", str(runs), "--format", "csv"])
    assert result.exit_code == 0
    assert "is damaged" in result.stderr
    assert "is damaged" not in result.stdout
    assert result.stdout.count("\n") == 6


def test_a_place_that_knows_ascii_only_gets_ascii(runs: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "80"}
    command = [sys.executable, "-m", "fedfuse", "show", "runs/a0"]
    done = subprocess.run(command, capture_output=True, cwd=runs.parent, env=environment, timeout=100)
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert b"***" in done.stdout
    assert not done.stderr


def test_lines_fit_80_columns_or_are_commands_and_paths(runs: Path) -> None:
    for words in (["show", runs], ["show", runs / "b1"], ["table", runs]):
        for line in obeyed(*words).splitlines():
            assert len(line) <= 80 or str(runs) in line


def test_without_a_place_it_is_the_folder_of_runs(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(runs.parent)
    assert "fedavg" in obeyed("show")
    obeyed("plot")
    assert Path("plot.png").exists()
    obeyed("report")
    assert Path("report.html").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("table", "--out", "t.xlsx"), "t.xlsx: what shall it be? End its name with .tex, .md, .csv, .json, .txt"),
        (
            ("table", "--format", "csv", "--out", "t.md"),
            "t.md would be called md and hold csv; change --out or",
        ),
        (("report", "--out", "page.pdf"), "page.pdf: the name of a page ends with .html"),
        (("report", "--out", "page"), "page: the name of a page ends with .html"),
    ],
)
def test_a_file_is_what_its_name_says(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(words[0], runs, *words[1:])
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_file_of_another_name_may_hold_what_is_said(runs: Path, tmp_path: Path) -> None:
    obeyed("table", runs, "--format", "csv", "--out", tmp_path / "table.dat")
    assert (tmp_path / "table.dat").read_text() == fedfuse.load_runs(runs).table("csv")
