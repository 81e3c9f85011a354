"""The two files of a partition, and the one file of earlier versions."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from random import Random

import numpy as np

from fedfuse.data import PartitionReport
from fedfuse.data.partition import Dirichlet
from fedfuse.data.partition.files import arrays_beside
from tests.fuzzing.checkpoint import as_json
from tests.fuzzing.mutation import bytes_of, value_of
from tests.fuzzing.place import place

Case = tuple[bytes, bytes]
"""The JSON, and the arrays beside it."""
PARTS = [np.array([3, 0, 2]), np.array([1, 5]), np.array([4])]
LABELS = np.array([0, 1, 2, 0, 1, 2])


def honest() -> list[Case]:
    report = PartitionReport.of(Dirichlet(clients=3, alpha=1.0), PARTS, LABELS, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "partition.json"
        report.save(path)
        now = path.read_bytes(), arrays_beside(path).read_bytes()
    counts = [np.bincount(LABELS[part], minlength=3).tolist() for part in PARTS]
    earlier = {
        "partition": {"kind": "dirichlet"},
        "examples": 6,
        "sha256": report.sha256,
        "clients": [{"name": str(number), "class_counts": own} for number, own in enumerate(counts)],
        "assignment": [sorted(part.tolist(), key=LABELS.__getitem__) for part in PARTS],
    }
    parts = [np.array(part) for part in earlier["assignment"]]
    earlier["sha256"] = PartitionReport.of(Dirichlet(clients=3, alpha=1.0), parts, LABELS, 3).sha256
    return [now, (json.dumps(earlier).encode(), b"")]


def mutate(rng: Random, case: Case) -> Case:
    facts, arrays = case
    if rng.random() < 0.4:
        return json.dumps(as_json(value_of(rng, json.loads(facts)))).encode(), arrays
    return (bytes_of(rng, facts), arrays) if rng.random() < 0.6 or not arrays else (facts, bytes_of(rng, arrays))


def read(case: Case) -> None:
    path = place("partition.json")
    path.write_bytes(case[0])
    arrays_beside(path).write_bytes(case[1])
    report = PartitionReport.load(path)
    assert [part.tolist() for part in report.assignment], "it was checked against its hash"
    report.in_words()
    report.counts()
