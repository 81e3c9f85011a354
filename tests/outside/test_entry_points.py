"""Methods of installed packages: listed with where they come from, run by name; broken ones break nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import fedfuse
from tests.outside import page

ENTRIES = """
[fedfuse.methods]
feddyn = plugin_methods:FEDDYN
fedavg = plugin_methods:FEDDYN
broken = plugin_methods:MISSING
raising = plugin_raising:METHOD
other = plugin_methods:Dynamic
"""
SECOND = """
[fedfuse.methods]
feddyn = plugin_methods:FEDDYN
"""


RAISING = "method raising of fedfuse-dyn 1.2.3 cannot be loaded: RuntimeError: out of order (plugin_raising.py, line 1)"
RUN = (
    "run",
    "digits",
    "--set",
    "federation.rounds=1",
    "--set",
    "training.epochs=1",
    "--set",
    "evaluation.pictures=false",
)
COMMANDS = [
    ("methods",),
    ("methods", "feddyn"),
    ("methods", "fedavg", "--yaml"),
    ("parts", "local"),
    ("parts", "local", "plugin_methods:Dynamic"),
    ("parts", "merge", "plugin_methods:Dynamic"),
    *((*RUN, "--method", name) for name in ("feddyn", "raising", "feddin")),
]
SCRIPT = """
import contextlib, io, json, sys
from fedfuse.cli import main

said = []
for words in json.loads(sys.argv.pop()):
    sys.argv[1:] = words
    out, errors, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    said.append([words, code, out.getvalue(), errors.getvalue()])
print(json.dumps(said))
"""
"""One command line after another, in a process that finds what is installed."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as pip leaves it, on the path of other processes."""
    site = tmp_path_factory.mktemp("site")
    (site / "plugin_methods.py").write_text(page.files()["my_methods.py"])
    (site / "plugin_raising.py").write_text("raise RuntimeError('out of order')\n")
    for name, version, entries in (("fedfuse-dyn", "1.2.3", ENTRIES), ("zweite", "0.1", SECOND)):
        about = site / f"{name.replace('-', '_')}-{version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (about / "entry_points.txt").write_text(entries)
    return site


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("commands")


@pytest.fixture(scope="module")
def command(installed: Path, folder: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    package = Path(fedfuse.__file__).parents[1]
    path = {**os.environ, "PYTHONPATH": f"{installed}{os.pathsep}{package}", "COLUMNS": "200"}
    program = [sys.executable, "-c", SCRIPT, json.dumps(COMMANDS)]
    done = subprocess.run(program, cwd=folder, env=path, capture_output=True, text=True, check=True)
    said = {tuple(words): subprocess.CompletedProcess(words, *rest) for words, *rest in json.loads(done.stdout)}
    return lambda *words: said[words]


def test_the_list_says_where_a_method_comes_from_and_what_cannot_be_used(command):
    done = command("methods")
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert next(line for line in lines if line.startswith("feddyn ")).endswith("(fedfuse-dyn 1.2.3)")
    assert "feddf" in done.stdout
    for sentence in (
        "method fedavg of fedfuse-dyn 1.2.3 is left out: fedfuse itself has one of that name",
        "method feddyn of zweite 0.1 is left out: fedfuse-dyn 1.2.3 has one of that name",
        RAISING,
        "method: plugin_methods:Dynamic of fedfuse-dyn 1.2.3 is no fedfuse.Method but a class",
    ):
        assert sentence in lines
    assert any(line.startswith("method broken of fedfuse-dyn 1.2.3 cannot be loaded: AttributeError") for line in lines)


def test_one_is_shown_with_its_package(command):
    done = command("methods", "feddyn")
    assert done.returncode == 0, done.stderr
    assert "fedfuse-dyn 1.2.3" in done.stdout


def test_its_part_is_listed_under_its_slot_and_shown_by_its_address(command):
    listed = command("parts", "local").stdout.splitlines()
    assert any(line.startswith("plugin_methods:Dynamic: ") for line in listed)
    assert any(line.startswith("proximal: ") for line in listed)
    shown = command("parts", "local", "plugin_methods:Dynamic")
    assert shown.returncode == 0, shown.stderr
    assert "write  method.local: {kind: plugin_methods:Dynamic}" in shown.stdout
    assert "strength" in shown.stdout
    refused = command("parts", "merge", "plugin_methods:Dynamic")
    assert refused.returncode == 2
    assert "is no Merge; derive it from fedfuse.Merge" in refused.stderr


def test_one_is_run_by_its_name(command, folder):
    done = command(*RUN, "--method", "feddyn")
    assert done.returncode == 0, done.stderr
    assert (folder / "runs" / "digits-epochs=1-feddyn-seed0" / "summary.json").exists()
    assert "plugin_methods:Dynamic" in (folder / "runs" / "digits-epochs=1-feddyn-seed0" / "config.yaml").read_text()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "raising",
            RAISING,
        ),
        ("feddin", "unknown method 'feddin' (did you mean 'feddyn'?)"),
    ],
)
def test_one_that_cannot_be_had_is_refused_in_one_sentence(command, name, sentence):
    done = command(*RUN, "--method", name)
    assert done.returncode == 2
    assert done.stderr == f"fedfuse: digits: {sentence}\n"


def test_a_name_of_ours_stays_ours(command):
    done = command("methods", "fedavg", "--yaml")
    assert "kind: plain" in done.stdout
    assert "plugin_methods" not in done.stdout
