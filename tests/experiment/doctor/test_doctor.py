"""The examination: what is missing has a remedy, what is broken ends with 2, and nothing stops it half-way."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedfuse.experiment.doctor import Diagnosis, Finding, doctor, examine, packages
from fedfuse.experiment.doctor.packages import Requirement, numbers, requirements
from tests.cli.test_cli import InProcess
from tests.cli.test_cli import in_process as in_process


@pytest.fixture
def no_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages are taken to be importable, which spares the test their processes."""
    monkeypatch.setattr(packages, "import_problem", lambda *_: None)


@pytest.mark.long
def test_it_works_here_and_fits_on_a_screen() -> None:
    """With the processes that import everything."""
    found = doctor()
    assert found.works, str(found)
    assert max(map(len, found.lines(80))) <= 80
    assert any(one.name == "federation" for one in found.sections["does it work"])


@pytest.mark.usefixtures("no_imports")
def test_the_command_prints_it_for_people_and_programs(in_process: InProcess) -> None:
    printed = in_process("doctor")
    assert printed.returncode == 0, printed.stderr
    assert "torch" in printed.stdout
    told = json.loads(in_process("doctor", "--json").stdout)
    assert told["works"] is True
    assert {"name", "state", "text", "remedy"} == set(told["sections"]["extras"][0])


@pytest.mark.usefixtures("no_imports")
def test_what_is_needed_and_does_not_work_ends_with_2(in_process: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> float:
        raise RuntimeError("no such instruction")

    monkeypatch.setattr(examine, "_try_out", failing)
    done = in_process("doctor")
    assert done.returncode == 2
    assert "a small one failed: RuntimeError: no such instruction" in " ".join(done.stdout.split())
    assert done.stderr == "fedfuse: what is needed does not work: federation\n"


@pytest.mark.usefixtures("no_imports")
def test_a_federation_that_learns_nothing_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examine, "_try_out", lambda: 0.33)
    assert [one.name for one in doctor().broken] == ["federation"]


@pytest.mark.usefixtures("no_imports")
def test_a_package_that_is_missing_or_too_old_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"torch": "2.1.0", "ray": None, "onnx": "1.0", "onnxscript": "0.5", "onnxruntime": "1.20"}
    former = Requirement.installed
    monkeypatch.setattr(Requirement, "installed", lambda self: versions.get(self.name, former(self)))
    needed = {one.name: one for one in packages.needed()}
    assert needed["torch"].state == "broken"
    assert shlex.split(needed["torch"].remedy)[:2] == ["pip", "install"]
    assert shlex.split(needed["torch"].remedy)[2].startswith("torch")
    extras = {one.name: one for one in packages.optional()}
    assert extras["ray"].state == "missing"
    assert extras["ray"].remedy == "pip install 'ray>=2.40'"
    assert extras["export"].state == "note"
    assert "dev" not in extras


def test_a_module_that_cannot_be_imported_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raises_here.py").write_text("raise OSError('libgone.so: cannot open')")
    (tmp_path / "dies_here.py").write_text("import os; os._exit(11)")
    (tmp_path / "hangs_here.py").write_text("import time; time.sleep(60)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert packages.import_problem("json") is None
    assert packages.import_problem("json", "raises_here") == "OSError: libgone.so: cannot open"
    assert packages.import_problem("dies_here") == "the process ended with 11"
    monkeypatch.setattr(packages, "SECONDS", 0.5)
    assert packages.import_problem("hangs_here") == "it took more than 0.5 s"


@pytest.mark.usefixtures("no_imports")
def test_whatever_is_wrong_the_examination_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Iterator[Finding]:
        yield Finding("first", "ok", "was fine")
        raise PermissionError("/proc is locked")

    monkeypatch.setattr(examine, "_machine", broken)
    monkeypatch.setattr(examine, "_try_out", lambda: 1.0)
    found = doctor()
    assert [one.state for one in found.sections["this machine"]] == ["ok", "broken"]
    assert found.sections["does it work"][0].state == "ok"


@pytest.mark.usefixtures("no_imports")
def test_surroundings_that_mislead_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDFUSE_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr(examine, "_try_out", lambda: 1.0)
    monkeypatch.setattr(examine, "LITTLE_DISK", 10**18)
    found = {one.name: one for findings in doctor().sections.values() for one in findings}
    assert found["FEDFUSE_DATA"].state == "note"
    assert found["here"].remedy == "free some space"


def test_it_speaks_where_hardly_anything_can_be_imported(tmp_path: Path) -> None:
    """Without torch, numpy, rich and pydantic, in a folder whose files are called like modules of others."""
    (tmp_path / "nt.py").write_text("raise SystemExit('taken for a module of Python')")
    script = (
        "import sys\nfor name in ('torch', 'numpy', 'rich', 'pydantic', 'yaml'): sys.modules[name] = None\n"
        "from fedfuse.experiment.doctor import packages\npackages.import_problem = lambda *_: None\n"
        "sys.argv[1:] = ['doctor']\nfrom fedfuse.cli import main\nmain()\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2, done.stderr
    assert "federation" in done.stderr
    assert "Traceback" not in done.stderr
    assert "memory" in done.stdout


def test_what_it_asks_for_is_what_the_package_does() -> None:
    named = {one.name for one in requirements() if not one.extra}
    assert {"torch", "numpy", "pydantic", "typer"} <= named
    assert {"ray", "flower", "export", "hub", "text"} <= {one.extra for one in requirements()}


@pytest.mark.parametrize(
    ("versions", "version", "fits"),
    [
        (">=2.4,<3", "2.13.0+cpu", True),
        (">=2.4,<3", "3.0", False),
        (">=2.4", "2.3.9", False),
        (">=1.41,<1.42", "1.41.5rc1", True),
        ("", "0", True),
        ("==1.2", "1.2.0", True),
    ],
)
def test_versions_are_compared_by_their_numbers(versions: str, version: str, fits: bool) -> None:
    assert Requirement("x", versions).fits(version) is fits
    assert numbers("1.4.2rc1") == (1, 4, 2)


def test_names_and_texts_from_elsewhere_break_no_line() -> None:
    odd = Diagnosis({"data": (Finding("n" * 30, "note", "a " * 300, "b " * 100), Finding("x", "ok", ""))})
    assert max(map(len, odd.lines(80))) <= 80
