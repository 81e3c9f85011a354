"""The first run of a process is not slower than the others: nothing is imported while its clock runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fedfuse.runtime.warm_up import warm_up

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
print(*sorted(name for name in late if name.startswith("torch")))
"""


@pytest.mark.parametrize("method", ["fedavg", "feddf"])
def test_no_round_waits_for_imports_of_torch(tmp_path: Path, method: str) -> None:
    arguments = [sys.executable, "-c", SCRIPT, method, str(tmp_path / "run")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=400)
    assert done.stdout.split() == []


def test_it_draws_no_random_number() -> None:
    warm_up.cache_clear()
    before = torch.random.get_rng_state()
    warm_up(torch.device("cpu"))
    assert torch.equal(torch.random.get_rng_state(), before)
