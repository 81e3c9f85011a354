"""``mypy --strict`` on a script of somebody who has fedfuse installed and no settings of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fedfuse
from fedfuse import Comparison, Experiment, FedfuseError, FuseResult, RunResult, StopRun, Sweep


def listen(event: Mapping[str, Any]) -> None:
    if event["event"] == "round_finished":
        raise StopRun("enough")


def main() -> None:
    try:
        result: RunResult = fedfuse.run("digits", method="fedavg", seed=1, federation={"rounds": 3}, progress=listen)
    except FedfuseError as error:
        raise SystemExit(str(error)) from None
    best: float = max(result.accuracy.values())
    classes = result.model().predict([[0.0] * 64])
    comparison: Comparison = fedfuse.compare("digits", ["fedavg", "feddf"], seeds=[0, 1], out=Path("runs"))
    drawn: Path = comparison.plot("curves.pdf", x="bytes", band="std")
    found: Sweep = fedfuse.sweep("digits", {"training.batch_size": [16, 64]}, budget=3)
    cost = fedfuse.estimate(Experiment.load("digits", method="fedavg"))
    everything = fedfuse.run_all({"runs/one": Experiment({"data": {"name": "digits"}})})
    again: RunResult = fedfuse.load_run("runs/one")
    table: str = fedfuse.load_runs("runs").table("latex", columns=["accuracy_last"])
    print(best, classes, drawn, found.best, cost.bytes_up, list(everything), again.stopped, table)
    reveal_type(result.accuracy)
    fused = fedfuse.fuse(["a.safetensors"], student="mlp")
    if isinstance(fused, FuseResult):
        print(fused.student.accuracy)
    %s


main()
"""


def checked(folder: Path, last: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(SCRIPT % last)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--cache-dir",
        str(folder / "cache"),
        "script.py",
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900, check=False)


@pytest.mark.long
def test_a_users_script_is_checked_and_its_mistakes_are_found(tmp_path: Path) -> None:
    right = checked(tmp_path, "pass")
    assert right.returncode == 0, right.stdout
    assert re.search(r"Revealed type is .*dict\[.*str, .*float\]", right.stdout), "names are not Any"
    wrong = checked(tmp_path, 'fedfuse.run("digits", sead=1, seed="one")')
    assert wrong.returncode == 1
    assert '"str"' in wrong.stdout
