"""What a run imports: nothing while a round's clock runs, and nothing heavy that it does not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from fedfuse.experiment.run import Experiment
from tests.helpers import tiny_config

known, late = set(), set()

def listen(event):
    if event["event"] == "round_started":
        known.update(sys.modules)
    if event["event"] == "round_finished":
        late.update(set(sys.modules) - known)

Experiment(tiny_config(sys.argv[1])).run(sys.argv[2], listeners=(listen,))
brief = ["federation.rounds=1", "training.epochs=1", "evaluation.pictures=false"]
Experiment.load("digits", brief, method=sys.argv[1]).run(sys.argv[2] + "-digits")
print(*sorted(name for name in late if name.startswith("torch")))
print(*sorted({"torch._dynamo", "sklearn", "scipy", "pandas"} & set(sys.modules)))
"""


@pytest.mark.parametrize("method", [pytest.param("fedavg", marks=pytest.mark.long), "feddf"])
def test_no_round_waits_for_imports_of_torch_and_nothing_heavy_is_imported_in_vain(tmp_path: Path, method: str) -> None:
    arguments = [sys.executable, "-c", SCRIPT, method, str(tmp_path / "run")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=400)
    late, heavy = done.stdout.splitlines()
    assert late == ""
    assert heavy == ""
