"""A few thousand cases for every target; ``make fuzz`` tries a million."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.fuzzing.harness import run, targets

TARGETS, _ = targets()
CASES = 2000
SEED = 0


@pytest.mark.parametrize("name", TARGETS)
def test_a_reader_reads_or_refuses(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("FEDFUSE_CACHE", str(tmp_path / "nowhere"))
    (tmp_path / "nowhere").write_text("a file where the folder would be")
    tally = run(name, TARGETS[name], SEED, range(CASES))
    assert not tally.faults, f"again: python -m tests.fuzzing {name} --seed {SEED} --only N"
    assert tally.cases == CASES
    assert tally.refused > CASES / 20, "nothing much is damaged"
    assert tally.read > CASES / 100, "nothing much gets through"
