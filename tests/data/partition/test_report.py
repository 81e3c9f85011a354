from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.core.tensor_files import read_safetensors, write_safetensors
from fedfuse.data.dataset import Owners
from fedfuse.data.partition import Dirichlet, DirichletFloor, Iid, Natural, PartitionReport
from fedfuse.data.partition.report import SHOWN

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
    assert all(np.array_equal(one, other) for one, other in zip(loaded.assignment, expected, strict=True))
    assert np.sum([share.class_counts for share in loaded.clients], axis=0).tolist() == [20, 20, 20]
    assert sum(share.size for share in loaded.clients) == 60


def test_lost_examples_are_counted() -> None:
    partition = DirichletFloor(clients=4, alpha=1.0)
    assignment = partition.assign(LABELS, 3, Key(0))
    report = PartitionReport.of(partition, assignment, LABELS, 3)
    assert report.unassigned == 60 - sum(len(part) for part in assignment)


def test_the_file_for_people_shows_the_first_clients_and_the_arrays_have_all(tmp_path: Path) -> None:
    report = make(tmp_path / "partition.json")
    about = json.loads((tmp_path / "partition.json").read_text())
    assert about["in_words"] == report.in_words()
    assert (about["clients"], about["examples"], about["unassigned"]) == (4, 60, 0)
    assert about["first_clients"][1]["class_counts"] == list(report.clients[1].class_counts)
    assert (tmp_path / "partition.json").read_text().count("\n") == len(about) + 2 + 1 + 4
    many = PartitionReport.of(Iid(clients=1000), np.split(np.arange(2000), 1000), np.arange(2000) % 3, 3)
    many.save(tmp_path / "many.json")
    assert len(json.loads((tmp_path / "many.json").read_text())["first_clients"]) == SHOWN
    assert PartitionReport.load(tmp_path / "many.json") == many


def test_a_client_takes_a_few_bytes(tmp_path: Path) -> None:
    """Four for each position, one for its class, four for the client; nothing else grows."""
    files = [tmp_path / "partition.json", tmp_path / "partition.safetensors"]
    sizes = []
    for clients in (1_000, 20_000):
        labels = np.arange(3 * clients) % 10
        partition = Iid(clients=clients)
        PartitionReport.of(partition, partition.assign(labels, 10, Key(0)), labels, 10).save(files[0])
        sizes.append(sum(file.stat().st_size for file in files))
    assert sizes[1] - sizes[0] <= 19_000 * (3 * 5 + 4) + 200


def test_what_lies_there_already_is_not_written_again(tmp_path: Path) -> None:
    files = [tmp_path / "partition.json", tmp_path / "partition.safetensors"]
    make(files[0])
    before = [(file.stat().st_ino, file.stat().st_mtime_ns) for file in files]
    make(files[0])
    assert [(file.stat().st_ino, file.stat().st_mtime_ns) for file in files] == before
    whole = files[1].read_bytes()
    files[1].write_bytes(whole[:-1])
    make(files[0])
    assert files[1].read_bytes() == whole


def test_a_changed_or_cut_file_is_refused(tmp_path: Path) -> None:
    path, arrays = tmp_path / "partition.json", tmp_path / "partition.safetensors"
    make(path)
    whole, all_arrays = path.read_text(), arrays.read_bytes()
    content = json.loads(whole)
    half = {name: value for name, value in content.items() if name != "examples"}
    others = [{**content, "clients": 5}, {**content, "sha256": "0" * 64}, {**content, "examples": 99}, half]
    for text in (whole[:100], "[]", "[" * 99_999, *map(json.dumps, others)):
        path.write_text(text)
        with pytest.raises(DataError, match="cannot be read as a partition"):
            PartitionReport.load(path)
    path.write_text(whole)
    for changed in (all_arrays[:-4], all_arrays[:-1] + bytes([all_arrays[-1] ^ 1]), bytes(len(all_arrays))):
        arrays.write_bytes(changed)
        with pytest.raises(DataError, match="cannot be read as a partition"):
            PartitionReport.load(path)
    arrays.unlink()
    with pytest.raises(DataError, match="cannot be read as a partition"):
        PartitionReport.load(path)
    with pytest.raises(DataError, match="cannot be read as a partition"):
        PartitionReport.load(tmp_path / "absent.json")


def older_file(report: PartitionReport) -> dict[str, Any]:
    """What earlier versions wrote: everything as JSON."""
    return {
        "partition": report.partition,
        "examples": report.examples,
        "unassigned": report.unassigned,
        "sha256": report.sha256,
        "clients": [asdict(client) for client in report.clients],
        "assignment": [part.tolist() for part in report.assignment],
    }


def test_the_file_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    path = tmp_path / "partition.json"
    partition = Dirichlet(clients=4, alpha=1.0)
    report = PartitionReport.of(partition, partition.assign(LABELS, 3, Key(0)), LABELS, 3)
    path.write_text(json.dumps(older_file(report)))
    loaded = PartitionReport.load(path)
    assert list(loaded.clients) == list(report.clients)
    assert [part.tolist() for part in loaded.assignment] == [part.tolist() for part in report.assignment]
    assert (loaded.sha256, loaded.in_words()) == (report.sha256, report.in_words())
    content = older_file(report)
    content["clients"][0]["class_counts"] = [10**12, 0, 0]
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="cannot be read as a partition"):
        PartitionReport.load(path)
    content = older_file(report)
    content["assignment"][0][0] += 1
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="does not match its sha256"):
        PartitionReport.load(path)


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


def test_counts_of_single_clients_and_of_neighbours_together() -> None:
    partition = Dirichlet(clients=7, alpha=1.0)
    report = PartitionReport.of(partition, partition.assign(LABELS, 3, Key(0)), LABELS, 3)
    counts = report.counts()
    assert counts.tolist() == [list(client.class_counts) for client in report.clients]
    assert report.counts(3).tolist() == [counts[a:b].sum(axis=0).tolist() for a, b in ((0, 3), (3, 5), (5, 7))]


def test_classes_keep_their_names(tmp_path: Path) -> None:
    partition = Iid(clients=2)
    named = PartitionReport.of(partition, partition.assign(LABELS, 3, Key(0)), LABELS, ("ant", "bee", "cat"))
    named.save(tmp_path / "partition.json")
    assert PartitionReport.load(tmp_path / "partition.json").called == ["ant", "bee", "cat"]
    numbered = PartitionReport.of(partition, partition.assign(LABELS, 3, Key(0)), LABELS, ("0", "1", "2"))
    assert numbered.class_names is None
    assert numbered != named
    numbered.save(tmp_path / "partition.json")
    assert "class_names" not in json.loads((tmp_path / "partition.json").read_text())


@pytest.mark.parametrize("names", [["a"], "abc", [1, 2, 3], None, {"a": 1, "b": 2, "c": 3}], ids=str)
def test_names_of_other_classes_are_refused(tmp_path: Path, names: object) -> None:
    path = tmp_path / "partition.json"
    make(path)
    about = {**json.loads(path.read_text()), "class_names": names}
    path.write_text(json.dumps(about))
    tensors, _ = read_safetensors(path.with_suffix(".safetensors"))
    write_safetensors(path.with_suffix(".safetensors"), tensors, {"names": None})  # of a version without that hash
    with pytest.raises(DataError, match="cannot be read as a partition"):
        PartitionReport.load(path)
