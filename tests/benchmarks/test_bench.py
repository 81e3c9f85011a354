"""``python -m benchmarks``: peers as contenders, what cannot be installed, the page of results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.page import BEGIN, END, write_page
from benchmarks.peers import environments
from benchmarks.peers.environments import InstallationError, python_of
from benchmarks.peers.peer import PEERS, ROOT, pythons_of, with_peers

from benchmarks import __main__ as program
from fedfuse.experiment.bench.workloads import WORKLOADS

MODULES = sorted((ROOT / "benchmarks" / "peers").glob("*.py"))


def test_the_page_has_a_place_for_results_and_keeps_the_rest(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text((ROOT / "docs" / "performance.md").read_text(encoding="utf-8"), encoding="utf-8")
    before = page.read_text(encoding="utf-8")
    write_page(page, "first")
    write_page(page, "second")
    after = page.read_text(encoding="utf-8")
    assert "second" in after
    assert "first" not in after.partition(BEGIN)[2].partition(END)[0]
    assert after.partition(BEGIN)[0] == before.partition(BEGIN)[0]
    assert after.partition(END)[2] == before.partition(END)[2]


def test_a_page_without_its_marks_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("no marks")
    with pytest.raises(ValueError, match="has no place for results"):
        write_page(page, "results")


def test_every_peer_has_a_program_and_a_pinned_version() -> None:
    for peer in PEERS:
        assert (ROOT / "benchmarks" / "peers" / f"{peer.name.lower()}.py").exists()
        assert "==" in peer.requirement


def test_peers_take_part_where_their_programs_know_the_work() -> None:
    pythons = {peer.name: Path("python") for peer in PEERS}
    names = [row.label for row in with_peers(WORKLOADS["W1"], pythons).rows]
    assert {"pfl 0.6.0", "Flower 1.41.0, all cores"} <= set(names)
    assert with_peers(WORKLOADS["W2"], pythons) is WORKLOADS["W2"]


def test_who_cannot_be_installed_is_a_contender_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_command: list[str]) -> None:
        raise InstallationError("it cannot be installed: no network")

    monkeypatch.setattr(environments, "_run", fail)
    told: list[str] = []
    pythons = pythons_of(lambda peer: python_of(peer, tmp_path, told.append))
    assert set(pythons.values()) == {"it cannot be installed: no network"}
    assert told[0] == "installing pfl==0.6.0"
    reasons = {contender.unusable for contender in with_peers(WORKLOADS["W3"], pythons).contenders}
    assert reasons == {"", "it cannot be installed: no network"}


def test_an_environment_counts_only_with_the_versions_that_are_asked_for(tmp_path: Path) -> None:
    missing = tmp_path / "bin" / "python"
    assert not environments._has(missing, "pytest==1")
    assert environments._has(Path(sys.executable), f"pytest=={pytest.__version__}")
    assert not environments._has(Path(sys.executable), "pytest==1.0", "nosuchpackage==1")


def test_what_peers_share_needs_nothing_but_torch_and_numpy() -> None:
    """Their environments have none of our other packages."""
    code = (
        "import sys; import benchmarks.peers.task; "
        "found = {'pydantic', 'yaml', 'typer', 'rich', 'scipy', 'sklearn', 'safetensors'} & set(sys.modules); "
        "sys.exit(f'imported {found}' if found else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_torchvision_is_stood_in_for() -> None:
    code = (
        "import torchvision; from torchvision import transforms; from torchvision.models import resnet18; "
        "from torchvision.datasets.utils import download_url; torchvision.datasets.MNIST; transforms.Compose()"
    )
    stubs = ROOT / "benchmarks" / "peers" / "stubs"
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(stubs)}, check=True, timeout=60)


def test_turns_of_other_code_or_settings_do_not_count() -> None:
    plan = program.Plan([], "full", 3, Path())
    other = program.Plan([], "full", 3, Path(), ("compute.threads=2",))
    assert program._identity(plan) == program._identity(plan) != program._identity(other)


def test_an_unknown_workload_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    assert program.main(["W9"]) == 2
    assert "unknown workload 'W9'" in capfd.readouterr().out
