"""numpy's format is read as numpy reads it; what numpy would not have written is refused before it costs memory."""

from __future__ import annotations

import io
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from fedfuse.flower.npy import TYPES, read_npy


def saved(array, version=None):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), version=version, allow_pickle=False)
    return file.getvalue()


arrays = st.sampled_from(TYPES).flatmap(
    lambda dtype: st_numpy.arrays(dtype, st_numpy.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
)


@given(arrays, st.booleans(), st.sampled_from([None, (1, 0), (2, 0)]))
def test_it_brings_back_what_numpy_saved(array, turned, version):
    array = np.asfortranarray(array) if turned else array
    read, by_numpy = read_npy(saved(array, version)), np.load(io.BytesIO(saved(array, version)))
    assert read.dtype == by_numpy.dtype == array.dtype
    assert read.shape == by_numpy.shape
    assert read.tobytes() == by_numpy.tobytes() == array.tobytes()
    assert read.flags.writeable
    assert read.flags.aligned


def with_header(header, data=bytes(12), version=1):
    length = len(header).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + data


def header(descr="'<f4'", order="False", shape="(3,)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()


def test_a_header_by_hand():
    assert read_npy(with_header(header())).tolist() == [0, 0, 0]


HOSTILE = {
    "nothing": b"",
    "magic alone": b"\x93NUMPY\x01\x00",
    "zip": b"PK\x03\x04" + bytes(200),
    "pickle": b"\x80\x04\x95",
    "text": b"junk",
    "4 TB": with_header(header(shape="(1000000000000,)")),
    "more than a long": with_header(header(shape=f"({10**30},)")),
    "product of many": with_header(header(shape="(4294967296, 4294967296, 4294967296,)")),
    "negative": with_header(header(shape="(-3,)")),
    "zero times infinity": with_header(header(shape="(0, 100000000000000000,)"), b"x"),
    "cut off": with_header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (3,"),
    "deep": with_header(b"(" * 60000),
    "minus": with_header(b"-" * 60000),
    "bad length": with_header(header())[:8] + b"\xff\xff" + header() + bytes(12),
    "one byte less": with_header(header(), bytes(11)),
    "one byte more": with_header(header(), bytes(13)),
    "objects": with_header(header("'|O'")),
    "big endian": with_header(header("'>f4'")),
    "complex": with_header(header("'<c8'", shape="(1,)"), bytes(8)),
    "records": with_header(header("[('a', '<f4')]")),
    "letters": with_header(header("'<U1'")),
    "dates": with_header(header("'<M8[s]'")),
    "other bools": with_header(header("'|b1'"), b"\x00\x01\x02"),
    "17 dimensions": with_header(header(shape="(" + "1, " * 17 + ")"), bytes(4)),
    "code": with_header(header(shape="(__import__('os'),)")),
    "version 9": with_header(header(), version=9),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_numpy_would_not_write(name):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"^an array "):
            read_npy(HOSTILE[name])
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()
