"""Tensor files: the library's bytes without the library's copies, and pieces that are read one by one."""

from __future__ import annotations

import tracemalloc

import pytest
import torch
from safetensors.torch import save

from fedfuse.core.plain_json import dumps
from fedfuse.core.tensor_files import (
    DTYPES,
    read_piece,
    read_safetensors,
    read_tensors,
    write_safetensors,
    write_tensors,
)

EVERY_TYPE = {f"of {dtype}": torch.arange(12).reshape(3, 4).to(dtype) for dtype in DTYPES.values()}
CASES = {
    "every type": EVERY_TYPE,
    "types in another order": dict(reversed(EVERY_TYPE.items())),
    "nothing": {},
    "no entries and no dimensions": {
        "empty": torch.empty(0, 3),
        "scalar": torch.tensor(2.5),
        "flag": torch.tensor(True),
    },
    "not contiguous": {"transposed": torch.randn(3, 5).t(), "part": torch.randn(9)[2:7:2]},
    "shared": dict.fromkeys(("one", "two"), torch.randn(6)),
    "names": {name: torch.ones(1) for name in ("ü", 'a "quoted" \\ name', "\t\n\x7f\x01", "b/c", '["weights", "a"]')},
    "with a gradient": {"parameter": torch.nn.Parameter(torch.ones(3))},
}


def _bytes(tensor):
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def same(one, other):
    return (one.dtype, one.shape) == (other.dtype, other.shape) and _bytes(one) == _bytes(other)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("about", [{}, {"name": 'ü "x"', "value": float("nan"), "list": [1, 2.5, None]}])
def test_the_bytes_are_the_librarys(tmp_path, case, about):
    tensors, path = CASES[case], tmp_path / "file"
    write_safetensors(path, tensors, about)
    library = save({name: t.detach().contiguous().clone() for name, t in tensors.items()}, {"fedfuse": dumps(about)})
    assert path.read_bytes() == library
    found, said = read_safetensors(path)
    assert dumps(said) == dumps(about)
    assert all(same(found[name], tensor) for name, tensor in tensors.items())


def test_pieces_follow_one_another_and_each_is_read_alone(tmp_path):
    path = tmp_path / "pieces"
    with path.open("wb") as file:
        lengths = [write_tensors(file, tensors, {"case": case}) for case, tensors in CASES.items()]
    assert path.stat().st_size == sum(lengths)
    start = 0
    with path.open("rb") as file:
        for (case, tensors), length in zip(CASES.items(), lengths, strict=True):
            piece = read_piece(file, start)
            assert (piece.about, piece.end) == ({"case": case}, start + length)
            found = read_tensors(file, piece)
            assert set(found) == set(tensors)
            assert all(same(found[name], tensor) for name, tensor in tensors.items())
            start = piece.end


@pytest.mark.parametrize("left", [0, 4, 30, -1])
def test_a_piece_that_was_cut_is_not_read(tmp_path, left):
    path = tmp_path / "pieces"
    write_safetensors(path, EVERY_TYPE, {})
    path.write_bytes(path.read_bytes()[:left])
    with path.open("rb") as file, pytest.raises(ValueError, match=r"ends too early|Expecting"):
        read_tensors(file, read_piece(file, 0))


def test_a_tensor_is_not_copied_to_be_written(tmp_path):
    tensors = {str(number): torch.zeros(250_000) for number in range(4)}
    tracemalloc.start()
    write_safetensors(tmp_path / "file", tensors, {})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200_000
    assert (tmp_path / "file").stat().st_size > 4_000_000
