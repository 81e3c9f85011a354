"""The receipts of a party: complete, chained, and kept whatever happens to the process or the disk."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict

from fedfuse.core.errors import DataError
from fedfuse.flower import receipts
from fedfuse.flower.receipts import describe, last_receipt, read_receipts, write_receipt

CONTENT = RecordDict(
    {
        "arrays": ArrayRecord(
            {"0.weight": Array(np.ones((2, 3), np.float32)), "0.bias": Array(np.zeros(2, np.float32))}
        ),
        "config": ConfigRecord({"client": 1, "names": ["a", "b"]}),
        "metrics": MetricRecord({"loss": float("nan"), "num-examples": 7}),
    }
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "receipts" / "trial" / "client-1.jsonl"


def write(path, number: int = 1) -> None:
    write_receipt(path, {"client": 1, "run": 5, "round": number, "purpose": "update"}, describe(CONTENT))


def test_what_a_line_says(path):
    write(path)
    [line] = read_receipts(path)
    arrays = line["records"]["arrays"]
    sizes = [len(array.data) for array in CONTENT["arrays"].values()]
    assert arrays["arrays"] == [["0.weight", "float32", [2, 3], sizes[0]], ["0.bias", "float32", [2], sizes[1]]]
    assert arrays["bytes"] == sum(sizes)
    sent = b"".join(
        f"{name} {array.dtype} {list(array.shape)}\n".encode() + array.data for name, array in CONTENT["arrays"].items()
    )
    assert arrays["sha256"] == hashlib.sha256(sent).hexdigest()
    assert line["records"]["metrics"]["values"] == {"loss": None, "num-examples": 7}
    assert (line["client"], line["round"], line["purpose"]) == (1, 1, "update")


def test_lines_add_up_and_each_names_the_one_before(path):
    for number in range(1, 4):
        write(path, number)
    lines = path.read_bytes().splitlines()
    befores = [json.loads(line)["before"] for line in lines]
    assert befores == ["0" * 64, *(hashlib.sha256(line).hexdigest() for line in lines[:2])]
    once = {name: record["bytes"] for name, record in describe(CONTENT).items()}
    assert last_receipt(path)["total"] == {name: 3 * size for name, size in once.items()}
    assert [line["round"] for line in read_receipts(path)] == [1, 2, 3]


def test_only_the_owner_may_read(path):
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "bend", [lambda lines: lines[:1] + lines[2:], lambda lines: lines[1:], lambda lines: lines[::-1]]
)
def test_a_line_that_was_taken_out_shows(path, bend):
    for number in range(1, 4):
        write(path, number)
    path.write_bytes(b"".join(bend(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(DataError, match="does not follow the one before"):
        list(read_receipts(path))


@pytest.mark.parametrize("place", [0, 100, 700])
def test_a_changed_line_shows(path, place):
    for number in range(1, 3):
        write(path, number)
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="does not follow the one before"):
        list(read_receipts(path))


@pytest.mark.parametrize("left", [1, 40, -1])
def test_a_process_that_was_killed_while_it_wrote(path, left):
    """Its line stays as far as it got; what follows is a sound chain with the right totals."""
    write(path, 1)
    whole = path.read_bytes()
    write(path, 2)
    second = path.read_bytes()[len(whole) :]
    path.write_bytes(whole + second[:left])
    write(path, 3)
    write(path, 4)
    kept = [line["round"] for line in read_receipts(path)]
    assert kept == ([1, 2, 3, 4] if left == -1 else [1, 3, 4])
    assert last_receipt(path)["total"]["arrays"] == len(kept) * describe(CONTENT)["arrays"]["bytes"]


def test_lines_longer_than_a_block(path, monkeypatch):
    monkeypatch.setattr(receipts, "BLOCK", 7)
    for number in range(1, 4):
        write(path, number)
    assert [line["round"] for line in read_receipts(path)] == [1, 2, 3]


def test_several_processes_write_one_chain(path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: write(path, number), range(24)))
    assert sorted(line["round"] for line in read_receipts(path)) == list(range(24))


def test_a_full_disk_leaves_no_half_line(path, monkeypatch):
    write(path, 1)
    before = path.read_bytes()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match="No space left on device; nothing was sent"):
        write(path, 2)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "line",
    ["", "null", "7", "[]", "{}", '{"total": {}}', '{"total": {"arrays": "many"}, "records": {"arrays": 1}}', "\x00"],
)
def test_what_somebody_wrote_by_hand(path, line):
    """It is no receipt, and it is no obstacle either."""
    write(path, 1)
    with path.open("a") as file:
        file.write(line + "\n")
    assert last_receipt(path)["round"] == 1
    write(path, 2)
    assert [receipt["round"] for receipt in read_receipts(path)] == [1, 2]
    assert last_receipt(path)["total"]["arrays"] == 2 * describe(CONTENT)["arrays"]["bytes"]


def test_no_receipts_yet(path):
    assert last_receipt(path) is None
