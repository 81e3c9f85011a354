"""Images in folders."""

from __future__ import annotations

import io
import struct
import zlib
from random import Random

import numpy as np
from PIL import Image

from tests.fuzzing.mutation import SIZES, bytes_of
from tests.fuzzing.place import place
from tests.fuzzing.tables import load_file

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "PPM", "TIFF", "WEBP")
PNG_HEAD = 8


def honest() -> list[bytes]:
    """Encoded images of all formats; a folder has one of them beside a sound one."""
    pixels = np.random.default_rng(0).integers(0, 256, (6, 6, 3), dtype=np.uint8)
    gray = Image.fromarray(pixels[:, :, 0])
    indexed = Image.fromarray(pixels).quantize(8)
    return [
        *(_encoded(Image.fromarray(pixels), kind) for kind in FORMATS),
        *(_encoded(gray, kind) for kind in ("PNG", "JPEG", "PPM")),
        _encoded(indexed, "PNG"),
        _encoded(Image.fromarray(np.dstack([pixels, pixels[:, :, 0]])), "PNG"),
    ]


def _encoded(image: Image.Image, kind: str) -> bytes:
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def mutate(rng: Random, case: bytes) -> bytes:
    """PNG has a checksum after each piece, which is made right half of the time."""
    if not case.startswith(b"\x89PNG") or rng.random() < 0.5:
        return bytes_of(rng, case)
    pieces, at = [], PNG_HEAD
    while at < len(case):
        (length,) = struct.unpack(">I", case[at : at + 4])
        pieces.append((case[at + 4 : at + 8], case[at + 8 : at + 8 + length]))
        at += 12 + length
    chosen = rng.randrange(len(pieces))
    kind, content = pieces[chosen]
    if kind == b"IHDR" and rng.random() < 0.5:
        size = struct.pack(">2I", *(rng.choice((6, *SIZES)) % 2**32 for _ in range(2)))
        pieces[chosen] = kind, size + content[8:]
    else:
        pieces[chosen] = kind, bytes_of(rng, content)
    return case[:PNG_HEAD] + b"".join(_piece(*piece) for piece in pieces)


def _piece(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def read(case: bytes) -> None:
    root = place("photos")
    for name, content in (("a", _sound()), ("b", case)):
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name / "0.png").write_bytes(content)
    load_file("images", root, resize=4, channels=3)


def _sound() -> bytes:
    return _encoded(Image.fromarray(np.zeros((4, 4), np.uint8)), "PNG")
