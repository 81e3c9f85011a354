"""Tensor files: the library's bytes without the library's copies, a digest, and pieces that are read one by one."""

from __future__ import annotations

import hashlib
import json
import tracemalloc

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load, save

from fedfuse.core.plain_json import dumps
from fedfuse.core.tensor_files import (
    DTYPES,
    DamagedError,
    check_safetensors,
    read_header,
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


def parts_of(content):
    """The header, and the bytes behind it."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def digest_of(path):
    """Of a whole file with zeros in the digest's place, found with nothing of ours."""
    with safe_open(path, framework="pt") as file:
        stated = file.metadata()["sha256"]
    content = path.read_bytes()
    assert content.count(stated.encode()) == 1
    return hashlib.sha256(content.replace(stated.encode(), b"0" * 64)).hexdigest()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("about", [{}, {"name": 'ü "x"', "value": float("nan"), "list": [1, 2.5, None]}])
def test_the_bytes_are_the_librarys(tmp_path, case, about):
    tensors, path = CASES[case], tmp_path / "file"
    write_safetensors(path, tensors, about)
    metadata = {"sha256": digest_of(path), "fedfuse": dumps(about)}
    library = save({name: t.detach().contiguous().clone() for name, t in tensors.items()}, metadata)
    (ours, our_data), (theirs, their_data) = parts_of(path.read_bytes()), parts_of(library)
    assert list(ours) == list(theirs)
    assert (ours, our_data) == (theirs, their_data), "the library has its metadata in no fixed order"
    found, said = read_safetensors(path)
    assert dumps(said) == dumps(about)
    assert all(same(found[name], tensor) for name, tensor in tensors.items())


def test_pieces_follow_one_another_and_each_is_read_alone(tmp_path):
    path = tmp_path / "pieces"
    with path.open("wb") as file:
        lengths = [write_tensors(file, tensors, {"case": case}).length for case, tensors in CASES.items()]
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


def test_every_flipped_bit_is_noticed(tmp_path):
    path = tmp_path / "file"
    write_safetensors(path, {"a": torch.arange(3.0), "b": torch.tensor([True])}, {"x": "y"})
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        for read in (read_safetensors, check_safetensors):
            if b'"sha256"' in path.read_bytes():  # what has no digest is taken for a file of an earlier version
                with pytest.raises(DamagedError):
                    read(path)


@pytest.mark.parametrize("tail", [1, 12, 40])
def test_lost_blocks_are_noticed(tmp_path, tail):
    path = tmp_path / "file"
    write_safetensors(path, {"a": torch.rand(100)}, {})
    path.write_bytes(path.read_bytes()[:-tail] + bytes(tail))
    with pytest.raises(DamagedError, match="not those that were written"):
        read_safetensors(path)


def test_a_file_of_an_earlier_version_is_read(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(save({"a": torch.arange(5)}, {"fedfuse": '{"x": 1}'}))
    tensors, about = read_safetensors(path)
    assert about == {"x": 1}
    assert tensors["a"].tolist() == [0, 1, 2, 3, 4]
    assert read_header(path).sha256 is None
    check_safetensors(path)


def test_a_file_is_what_the_library_reads(tmp_path):
    path = tmp_path / "file"
    write_safetensors(path, EVERY_TYPE, {})
    found = load(path.read_bytes())
    assert all(same(found[name], tensor) for name, tensor in EVERY_TYPE.items())


def piece_of(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


OURS = {"__metadata__": {"fedfuse": "{}"}}
HOSTILE = {
    "nothing": b"",
    "less than a length": b"1234",
    "a header of 2^63": piece_of({}, length=1 << 63),
    "a header of 10^9": piece_of({}, length=10**9),
    "no JSON": piece_of(b"{x"),
    "no text": piece_of(b"\xff\xff"),
    "deep JSON": piece_of(b"[" * 100_000),
    "a list": piece_of([1]),
    "5,000 digits": piece_of(b'{"a": ' + b"9" * 5000 + b"}"),
    "no metadata": piece_of({}),
    "metadata of a number": piece_of({"__metadata__": 5}),
    "metadata of others": piece_of({"__metadata__": {"format": "pt"}}),
    "metadata of no JSON": piece_of({"__metadata__": {"fedfuse": "{x"}}),
    "deep metadata": piece_of({"__metadata__": {"fedfuse": "[" * 100_000}}),
    "a digest of a number": piece_of({"__metadata__": {"fedfuse": "{}", "sha256": 5}}),
    "a tensor of a number": piece_of({**OURS, "a": 5}),
    "another type": piece_of({**OURS, "a": entry("F99")}, bytes(4)),
    "a type of a list": piece_of({**OURS, "a": entry(["F32"])}, bytes(4)),
    "beyond the file": piece_of({**OURS, "a": entry(shape=(2,), offsets=(0, 8))}, bytes(4)),
    "16 TB": piece_of({**OURS, "a": entry(shape=(1 << 42,), offsets=(0, 1 << 44))}, bytes(4)),
    "more than any machine": piece_of({**OURS, "a": entry(shape=(1 << 60, 1 << 60), offsets=(0, 1 << 122))}),
    "none of very many": piece_of({**OURS, "a": entry(shape=(0, 1 << 47, 1 << 47), offsets=(0, 0))}),
    "dimensions without end": piece_of({**OURS, "a": entry(shape=[1] * 10_000)}, bytes(4)),
    "reversed": piece_of({**OURS, "a": entry(offsets=(4, 0))}, bytes(4)),
    "negative": piece_of({**OURS, "a": entry(shape=(-1,), offsets=(0, -4))}, bytes(4)),
    "fractions": piece_of({**OURS, "a": entry(shape=(1.0,), offsets=(0, 4.0))}, bytes(4)),
    "three offsets": piece_of({**OURS, "a": entry(offsets=(0, 4, 8))}, bytes(8)),
    "one upon the other": piece_of({**OURS, "a": entry(), "b": entry()}, bytes(4)),
    "a hole": piece_of({**OURS, "a": entry(), "b": entry(offsets=(8, 12))}, bytes(12)),
    "more than it says": piece_of({**OURS, "a": entry()}, bytes(5)),
}


@pytest.mark.parametrize("name", list(HOSTILE))
def test_whatever_is_no_file_of_ours_is_refused_before_anything_is_allocated(tmp_path, name):
    path = tmp_path / "file"
    path.write_bytes(HOSTILE[name])
    tracemalloc.start()
    try:
        for read in (read_safetensors, check_safetensors):
            with pytest.raises(DamagedError) as caught:
                read(path)
            assert len(str(caught.value)) < 200
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000
