"""Some of the cases of every target; ``make fuzz`` tries a million."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.fuzzing.harness import run, targets

TARGETS, _ = targets()
CASES, FEWER = 3000, 800
SLOW = (
    "csv_files",
    "experiment_set",
    "experiment_values",
    "experiment_yaml",
    "image_folders",
    "parquet_files",
    "python_data",
)
SEED = 0


@pytest.mark.parametrize("name", TARGETS)
def test_a_reader_reads_or_refuses(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("FEDFUSE_CACHE", str(tmp_path / "nowhere"))
    (tmp_path / "nowhere").write_text("a file where the folder would be")
    cases = FEWER if name in SLOW else CASES
    tally = run(name, TARGETS[name], SEED, range(cases))
    assert not tally.faults, f"again: python -m tests.fuzzing {name} --seed {SEED} --only N"
    assert tally.cases == cases
    assert tally.refused > cases / 20, "nothing much is damaged"
    assert tally.read > cases / 100, "nothing much gets through"
