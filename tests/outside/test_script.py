"""A part that is written in the very script that runs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.helpers import files_of
from tests.outside.parts import TINY

SCRIPT = """
import fedfuse

class First(fedfuse.Merge):
    def merge(self, view, prototype, updates):
        return fedfuse.Merged(updates[0].weights)

if __name__ == "__main__":
    for workers in (1, 2):
        fedfuse.run({TINY}, method={{"merge": First()}}, engine={{"workers": workers}}, out=f"run-{{workers}}")
"""


@pytest.mark.long
def test_its_own_workers_find_it_and_others_are_told_to_move_it(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT.format(TINY=TINY))
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert files_of(tmp_path / "run-1" / "final") == files_of(tmp_path / "run-2" / "final") != {}
    resumed = subprocess.run(
        [sys.executable, "-m", "fedfuse", "run", "run-1", "--resume"], cwd=tmp_path, capture_output=True, text=True
    )
    assert resumed.returncode == 2
    assert "First was written in a script or notebook, where only its own process finds it; move it" in resumed.stderr
