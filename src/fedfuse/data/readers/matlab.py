"""Arrays of numbers in MATLAB's files of version 5, packed or not; SciPy's reader crashes on damaged ones."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fedfuse.data.readers.bounds import check_fits
from fedfuse.data.readers.contents import Array

HEADER = 128
MATRIX, PACKED = 14, 15
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
"""What numbers are written as: the smallest type that holds them all."""
CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
"""What they are; MATLAB's other classes are no arrays of numbers."""


def read_matlab(path: Path) -> dict[str, Array]:
    """The arrays by name; ValueError, struct.error or zlib.error where the file is damaged."""
    check_fits(path.stat().st_size, path.name)
    content = memoryview(path.read_bytes())
    if bytes(content[126:128]) != b"IM":
        raise ValueError("no file of version 5 with the small end first")
    found: dict[str, Array] = {}
    for kind, body in _elements(content[HEADER:], path.name):
        if kind == MATRIX:
            found |= _matrix(body, path.name)
    return found


def _elements(content: memoryview, where: str) -> Iterator[tuple[int, memoryview]]:
    """The pieces of a file or of a matrix, with their kinds."""
    while content:
        kind, length = struct.unpack_from("<II", content)
        start, end = 8, 8 + length
        if kind >> 16:  # four bytes or fewer stand in the place of the length
            kind, start, end = kind & 0xFFFF, 4, 4 + (kind >> 16)
        if end > len(content) or (start == 4 and end > 8):
            raise ValueError("a piece is longer than the file")
        if kind == PACKED:
            yield from _unpacked(content[start:end], where)
        else:
            yield kind, content[start:end]
        content = content[end if kind == PACKED else -(-end // 8) * 8 :]


def _unpacked(content: memoryview, where: str) -> Iterator[tuple[int, memoryview]]:
    """A packed piece says itself how long it is."""
    packer = zlib.decompressobj()
    head = packer.decompress(content, 8)
    kind, length = struct.unpack("<II", head)
    check_fits(length, where)
    if kind != MATRIX:
        raise ValueError("something else than a matrix is packed")
    yield kind, memoryview(packer.decompress(packer.unconsumed_tail, max(length, 1)))


def _matrix(content: memoryview, where: str) -> dict[str, Array]:
    pieces = list(_elements(content, where))
    if len(pieces) < 4:
        return {}
    (_, flags), (_, sizes), (_, name), (kind, numbers) = pieces[:4]
    class_number = struct.unpack_from("<I", flags)[0] & 0xFF
    shape = struct.unpack(f"<{len(sizes) // 4}i", sizes)
    if class_number not in CLASSES or kind not in STORED:
        return {}
    stored = np.frombuffer(numbers, f"<{STORED[kind]}")
    if min(shape, default=0) < 0 or math.prod(shape) != stored.size:
        raise ValueError("an array of another length than its sizes say")
    array = stored.astype(CLASSES[class_number]).reshape(shape, order="F")
    return {bytes(name).decode("ascii", "replace"): array}
