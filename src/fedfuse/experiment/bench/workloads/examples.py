"""The file of a work's examples."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fedfuse.experiment.bench.work import Work, file_of
from fedfuse.experiment.bench.workloads.base import Setup


def examples_of(work: Work, setup: Setup) -> Path:
    """Where it lies; another process writes it, so that this one's time and memory do not count it."""
    path = file_of(work, setup.folder / "data")
    if not path.exists():
        names = "from pathlib import Path; from fedfuse.experiment.bench.work import Work, write_examples"
        subprocess.run([sys.executable, "-c", f"{names}; write_examples({work!r}, Path({str(path)!r}))"], check=True)
    return path
