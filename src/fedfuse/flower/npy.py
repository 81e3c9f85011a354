"""numpy's file format, read from bytes that anybody may have written.

numpy reads a header as Python source, and makes an array as large as the header says. Here a header is one that
``numpy.save`` writes, letter by letter, and the array is as large as the bytes that are there.
"""

from __future__ import annotations

import math
import re
from typing import Literal

import numpy as np
from numpy.typing import NDArray

TYPES = ("<f4", "<f8", "<f2", "<i2", "<i4", "<i8", "|i1", "|u1", "|b1")
"""float32, float64, float16, int16, int32, int64, int8, uint8, bool."""
MOST_DIMENSIONS = 16
START = re.compile(
    rb"\x93NUMPY(?:\x01\x00..|\x02\x00..\x00\x00)"
    rb"\{'descr': '([<|][a-z]\d)', 'fortran_order': (True|False), 'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n",
    re.DOTALL,
)
LONGEST = 1024
"""Bytes that a header may take."""


def read_npy(data: bytes) -> NDArray[np.generic]:
    """The array; a ValueError says what is wrong with the bytes."""
    found = START.match(data, 0, LONGEST)
    if found is None or found.end() != _end_of_header(data):
        raise ValueError("an array does not begin as numpy's own format does")
    name, order, sizes = (part.decode() for part in found.groups())
    if name not in TYPES:
        raise ValueError("an array is of a type that does not travel")
    shape = tuple(int(size) for size in re.findall(r"\d+", sizes))
    dtype = np.dtype(name)
    if len(shape) > MOST_DIMENSIONS or math.prod(shape) * dtype.itemsize != len(data) - found.end():
        raise ValueError("an array has more or fewer bytes than its shape needs")
    if dtype.kind == "b" and max(data[found.end() :], default=0) > 1:
        raise ValueError("an array of bool has other values than 0 and 1")
    memory_order: Literal["F", "C"] = "F" if order == "True" else "C"
    return np.ndarray(shape, dtype, data, found.end(), order=memory_order).copy(order="K")


def _end_of_header(data: bytes) -> int:
    """Where the header says that it ends."""
    size = 2 if data[6] == 1 else 4
    return 8 + size + int.from_bytes(data[8 : 8 + size], "little")
