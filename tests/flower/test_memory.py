"""What a node keeps: exact, for nobody else to read, and not spoilt by one damaged file."""

from __future__ import annotations

import stat

import pytest
import torch

from fedfuse.core.errors import DataError
from fedfuse.flower.memory import Memory


def state_of(number):
    return {"local/c": torch.full((50,), float(number)), "n": torch.tensor(number)}


def kept(folder):
    return [int(path.stem.removeprefix("round-")) for path in sorted(folder.glob("round-0*.safetensors"))]


def filled(folder, rounds, every=1):
    memory = Memory(folder, every)
    for number in range(1, rounds + 1):
        memory.store(number, number - 1, state_of(number))
    return memory


def test_states_come_back_and_older_ones_go(tmp_path):
    memory = filled(tmp_path / "client-0", 6)
    assert memory.recall(0) == {}
    assert torch.equal(memory.recall(6)["local/c"], state_of(6)["local/c"])
    assert kept(tmp_path / "client-0") == [3, 4, 5, 6]


def test_nobody_else_can_read_them(tmp_path):
    folder = tmp_path / "state" / "client-0"
    filled(folder, 2)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


DAMAGE = {
    "truncated": lambda content: content[:-5],
    "of no length": lambda _: b"",
    "a bit of the header": lambda content: content[:20] + bytes([content[20] ^ 1]) + content[21:],
    "a bit of the state": lambda content: content[:-3] + bytes([content[-3] ^ 1]) + content[-2:],
    "zeros": lambda content: bytes(len(content)),
}


@pytest.mark.parametrize("name", list(DAMAGE))
def test_a_damaged_state_is_not_recalled_and_does_not_keep_others_from_being_stored(tmp_path, name):
    memory = filled(tmp_path, 3)
    newest = tmp_path / "round-000003.safetensors"
    newest.write_bytes(DAMAGE[name](newest.read_bytes()))
    with pytest.raises(DataError, match=r"state after round 3, cannot be read .*restore the file, or run"):
        memory.recall(3)
    for number in range(4, 9):
        memory.store(number, number - 1, state_of(number))
        assert torch.equal(memory.recall(number)["n"], torch.tensor(number))
    assert kept(tmp_path) == [5, 6, 7, 8], "once nothing damaged is in reach, older ones go again"


def test_a_stray_file_is_neither_counted_nor_removed(tmp_path):
    (tmp_path / "round-x.safetensors").write_bytes(b"mine")
    filled(tmp_path, 6)
    assert (tmp_path / "round-x.safetensors").read_bytes() == b"mine"
    assert kept(tmp_path) == [3, 4, 5, 6]


def test_a_state_that_is_gone_is_said(tmp_path):
    with pytest.raises(DataError, match="state after round 9, cannot be read"):
        Memory(tmp_path, 1).recall(9)
