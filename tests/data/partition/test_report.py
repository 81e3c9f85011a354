from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.data.dataset import Owners
from fedfuse.data.partition import Dirichlet, DirichletFloor, Natural, PartitionReport, assignment_hash

LABELS = np.arange(60) % 3


def make(path: Path) -> PartitionReport:
    partition = Dirichlet(clients=4, alpha=1.0)
    report = PartitionReport.of(partition, partition.assign(LABELS, 3, Key(0)), LABELS, 3)
    report.save(path)
    return report


def test_a_report_survives_the_disk(tmp_path: Path) -> None:
    report = make(tmp_path / "partition.json")
    loaded = PartitionReport.load(tmp_path / "partition.json")
    assert loaded == report
    assert loaded.partition == {"kind": "dirichlet", "clients": 4, "alpha": 1.0, "min_examples": 1}
    expected = Dirichlet(clients=4, alpha=1.0).assign(LABELS, 3, Key(0))
    assert all(np.array_equal(one, other) for one, other in zip(loaded.indices, expected, strict=True))
    assert np.sum([share.class_counts for share in loaded.clients], axis=0).tolist() == [20, 20, 20]
    assert sum(share.size for share in loaded.clients) == 60


def test_lost_examples_are_counted() -> None:
    partition = DirichletFloor(clients=4, alpha=1.0)
    assignment = partition.assign(LABELS, 3, Key(0))
    report = PartitionReport.of(partition, assignment, LABELS, 3)
    assert report.unassigned == 60 - sum(len(part) for part in assignment)


def test_a_changed_or_cut_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "partition.json"
    make(path)
    whole = path.read_text()
    content = json.loads(whole)
    content["assignment"][0][0] += 1
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="does not match its sha256"):
        PartitionReport.load(path)
    path.write_text(whole[:100])
    with pytest.raises(DataError, match="cannot be read as a partition"):
        PartitionReport.load(path)
    with pytest.raises(DataError, match="cannot be read as a partition"):
        PartitionReport.load(tmp_path / "absent.json")


def test_the_hash_knows_the_borders() -> None:
    one, two = np.array([1]), np.array([2, 3])
    assert assignment_hash([one, two]) != assignment_hash([np.array([1, 2]), np.array([3])])


def test_clients_are_called_what_the_data_calls_them(tmp_path: Path) -> None:
    owners = Owners(torch.arange(60) % 3, ("ann", "bob", "cem"))
    partition = Natural(clients=2)
    assignment = partition.assign(LABELS, 3, Key(0), owners)
    report = PartitionReport.of(partition, assignment, LABELS, 3, owners)
    report.save(tmp_path / "partition.json")
    names = [client.name for client in PartitionReport.load(tmp_path / "partition.json").clients]
    assert names == [owners.names[int(owners.numbers[part[0]])] for part in assignment]
    assert report.unassigned == 20
    drawn = Dirichlet(clients=2, alpha=1.0)
    shares = PartitionReport.of(drawn, drawn.assign(LABELS, 3, Key(0), owners), LABELS, 3, owners).clients
    assert [client.name for client in shares] == ["0", "1"]


def test_in_words() -> None:
    partition = Dirichlet(clients=2, alpha=1.0)
    report = PartitionReport.of(partition, [np.arange(3), np.arange(3, 60)], LABELS, 3)
    assert report.in_words() == "2 clients with 3 to 57 examples of 3 classes each"
