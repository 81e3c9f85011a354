"""Some of the cases of every target; ``make fuzz`` tries a million."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import pytest

from fedfuse.core.errors import DataError
from tests.fuzzing.harness import TooSlow, case_of, run, targets

TARGETS, _ = targets()
CASES, FEWER = 1000, 120
SLOW = (
    "adapter_folders",
    "checkpoint",
    "csv_files",
    "experiment_set",
    "experiment_values",
    "experiment_yaml",
    "huggingface_folders",
    "image_folders",
    "jsonl_files",
    "misspelt_keys",
    "model",
    "npz_files",
    "parquet_files",
    "python_data",
    "starter_tables",
    "state_dicts",
)
FEWEST = {"run_folders": 80, "torchscript_files": 250}
"""Cases of targets that do much with each; of TorchScript, those before the first that makes torch end its process."""
SEED = 0


@pytest.mark.parametrize("name", TARGETS)
def test_a_reader_reads_or_refuses(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("FEDFUSE_CACHE", str(tmp_path / "nowhere"))
    (tmp_path / "nowhere").write_text("a file where the folder would be")
    cases = FEWEST.get(name, FEWER if name in SLOW else CASES)
    tally = run(name, TARGETS[name], SEED, range(cases))
    assert not tally.faults, f"again: python -m tests.fuzzing {name} --seed {SEED} --only N"
    assert tally.cases == cases
    assert tally.refused > cases / 20, "nothing much is damaged"
    assert tally.read > cases / 100, "nothing much gets through"


class Faulty:
    """A reader that does everything wrong, each with a number of its own."""

    __name__ = "faulty"

    def honest(self) -> list[int]:
        return [0]

    def mutate(self, rng: Random, case: int) -> int:
        return case + rng.randrange(5)

    def read(self, case: int) -> None:
        if case == 1:
            raise DataError("one sentence")
        if case == 2:
            raise DataError("")
        if case == 3:
            raise KeyError(case)
        if case == 4:
            raise TooSlow


def test_the_harness_tells_refusals_from_faults() -> None:
    first, again, other = (run("faulty", Faulty(), seed, range(200)) for seed in (1, 1, 2))
    assert first == again != other
    assert first.cases == 200
    cases = [case_of("faulty", Faulty(), [0], 1, number) for number in range(200)]
    assert (first.read, first.refused) == (cases.count(0), cases.count(1))
    found = {cases[fault.first]: (fault.what.split()[0], fault.times) for fault in first.faults.values()}
    assert found == {2: ("an", cases.count(2)), 3: ("KeyError", cases.count(3)), 4: ("takes", cases.count(4))}


def test_an_honest_case_must_be_read() -> None:
    target = Faulty()
    target.honest = lambda: [1]  # type: ignore[method-assign]
    assert [fault.first for fault in run("faulty", target, 0, range(1)).faults.values()] == [0]
