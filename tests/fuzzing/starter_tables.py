"""Tables for which an experiment is begun: what is written is YAML that names columns of the table."""

from __future__ import annotations

from random import Random

from fedfuse.core.yaml_text import load_yaml
from fedfuse.experiment.starter import columns_of, starter
from tests.fuzzing import csv_files
from tests.fuzzing.place import written


def honest() -> list[bytes]:
    return csv_files.honest()


def mutate(rng: Random, case: bytes) -> bytes:
    """Only the first line is looked at, so that some are cut short there."""
    return case[: rng.randrange(4)] if rng.random() < 0.1 else csv_files.mutate(rng, case)


def read(case: bytes) -> None:
    path = written("table.csv", case)
    data = load_yaml(starter("x", path), "the starter")["data"]
    assert data["label_column"] in columns_of(path, "csv")
