"""NumPy archives, and the arrays inside of them."""

from __future__ import annotations

import io
import zipfile
from random import Random

import numpy as np

from tests.fuzzing.mutation import bytes_of, text_of
from tests.fuzzing.place import written
from tests.fuzzing.tables import load_file

HEADERS = (
    "(4000000000000,)",
    "(-1,)",
    "()",
    "(0, 9)",
    "'|O'",
    "'<U0'",
    "'<f4'",
    "'>i8'",
    "'<M8[s]'",
    "True",
    "(",
    "{",
    "'",
)


def honest() -> list[bytes]:
    labels = np.arange(6) % 3
    images = np.arange(6 * 3 * 4 * 4, dtype=np.uint8).reshape(6, 3, 4, 4)
    return [
        _saved(x=np.ones((6, 2)), y=labels),
        _saved(inputs=images, labels=labels.astype(np.uint8), clients=np.array(list("aabbcc"))),
        _saved(x_train=images[:, 0], y_train=labels, x_test=images[:2, 0], y_test=labels[:2]),
        _saved(x=images.transpose(0, 2, 3, 1), y=labels),
        _saved(x=np.array(["a text", "another", "a third"]), y=np.arange(3), unused=np.zeros(100)),
        _saved(np.savez_compressed, x=np.asfortranarray(np.ones((6, 2), np.float32)), y=labels),
    ]


def _saved(save=np.savez, **arrays) -> bytes:  # type: ignore[no-untyped-def]
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def mutate(rng: Random, case: bytes) -> bytes:
    """Half of the time inside of an array, so that the archive around it is whole."""
    if rng.random() < 0.5:
        return bytes_of(rng, case)
    with zipfile.ZipFile(io.BytesIO(case)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(members))
    members[name] = _array(rng, members[name])
    if rng.random() < 0.2:
        members[rng.choice(("x.npy", "y.npy", "clients.npy", "x", "../x.npy"))] = rng.choice(list(members.values()))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return file.getvalue()


def _array(rng: Random, content: bytes) -> bytes:
    """The header is a line of text, and its length is written before it."""
    if rng.random() < 0.4:
        return bytes_of(rng, content)
    length = int.from_bytes(content[8:10], "little")
    header = text_of(rng, content[10 : 10 + length].decode("latin-1"), HEADERS).encode("latin-1", "replace")
    return content[:8] + (len(header) % 65536).to_bytes(2, "little") + header + content[10 + length :]


def read(case: bytes) -> None:
    load_file("npz", written("arrays.npz", case))
