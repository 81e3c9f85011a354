"""IDX, the format of MNIST, gzipped or not."""

from __future__ import annotations

import gzip
import struct
from random import Random

import numpy as np

from fedfuse.data.readers import Reading
from fedfuse.data.readers.idx import read_idx
from tests.fuzzing.mutation import bytes_of
from tests.fuzzing.place import written

LABELS = struct.pack(">2I", 0x801, 4) + bytes([0, 1, 2, 3])


def honest() -> list[bytes]:
    return [struct.pack(">4I", 0x803, 4, 5, 5) + np.arange(100, dtype=np.uint8).tobytes()]


def mutate(rng: Random, case: bytes) -> bytes:
    changed = bytes_of(rng, case)
    if rng.random() < 0.5:
        return changed
    packed = gzip.compress(changed, mtime=0)
    return bytes_of(rng, packed) if rng.random() < 0.5 else packed


def read(case: bytes) -> None:
    suffix = ".gz" if case.startswith(b"\x1f\x8b") else ""
    written(f"train-labels-idx1-ubyte{suffix}", gzip.compress(LABELS) if suffix else LABELS)
    read_idx([written(f"train-images-idx3-ubyte{suffix}", case)], Reading())
