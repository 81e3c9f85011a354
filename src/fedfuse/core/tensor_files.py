"""Tensors and one JSON value in one safetensors file: no pickle, and the same bytes for the same content.

Files are written here and not by the library, which would copy all tensors into one piece of memory first. A file has
eight bytes that say how long its header is, a header in JSON, and then the bytes of one tensor after another:

    {"__metadata__": {"sha256": ..., "fedfuse": ...},
     name: {"dtype": "F32", "shape": [...], "data_offsets": [begin, end]}, ...}

Several such pieces may follow one another in a file, because each says where it ends. The SHA-256 is that of the whole
piece, with 64 zeros in its own place; whoever reads a piece looks whether it still has it. Files of earlier versions
have none. Nothing is allocated that is larger than the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch
from torch import Tensor

from fedfuse.core.files import create, replacing
from fedfuse.core.plain_json import dumps

ABOUT, DIGEST, METADATA = "fedfuse", "sha256", "__metadata__"
NO_DIGEST_YET = b"0" * 64
DTYPES = {
    "BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "F8_E5M2": torch.float8_e5m2,
    "F8_E4M3": torch.float8_e4m3fn, "I16": torch.int16, "U16": torch.uint16, "F16": torch.float16,
    "BF16": torch.bfloat16, "I32": torch.int32, "U32": torch.uint32, "F32": torch.float32, "C64": torch.complex64,
    "F64": torch.float64, "I64": torch.int64, "U64": torch.uint64,
}  # fmt: skip
"""In the library's order: a file begins with the tensors whose type comes last here."""
RANKS = {dtype: rank for rank, dtype in enumerate(DTYPES.values())}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
ALIGNMENT = 8
LENGTH = 8
"""Bytes that say how long a header is."""
LONGEST_HEADER = 100_000_000
"""As for the library."""
MOST_DIMENSIONS = 32
LARGEST = 1 << 48
"""More bytes than any disk has."""
READ_AT_ONCE = 1 << 20


class DamagedError(ValueError):
    """Why a file is not one of ours as it was written; its reader says which file it is, and what to do."""


class Written(NamedTuple):
    """What became of a piece."""

    length: int
    sha256: str


def write_safetensors(
    path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any], private: bool = False
) -> None:
    """A whole file, in place of an older one."""
    with replacing(path) as temporary, create(temporary, private) as file:
        write_tensors(file, tensors, about)


def write_tensors(file: BinaryIO, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> Written:
    """Append one piece to an open file, one tensor after another."""
    ordered = sorted(tensors.items(), key=lambda item: (-RANKS[item[1].dtype], item[0]))
    header: dict[str, Any] = {METADATA: {DIGEST: NO_DIGEST_YET.decode(), ABOUT: dumps(about)}}
    end = 0
    for name, tensor in ordered:
        begin, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = _entry(tensor.dtype, tensor.shape, begin, end)
    head = _head(header)
    digest = hashlib.sha256(head)
    for _, tensor in ordered:
        digest.update(_bytes_of(tensor))
    file.write(head.replace(NO_DIGEST_YET, digest.hexdigest().encode(), 1))
    for _, tensor in ordered:
        file.write(_bytes_of(tensor))
    return Written(len(head) + end, digest.hexdigest())


def read_safetensors(path: Path) -> tuple[dict[str, Tensor], Any]:
    """The tensors of a whole file, and what it says about them."""
    with path.open("rb", buffering=0) as file:
        piece = _only_piece(file)
        return read_tensors(file, piece), piece.about


def read_header(path: Path) -> Piece:
    """What a whole file says, without a look at its tensors."""
    with path.open("rb", buffering=0) as file:
        return _only_piece(file)


def check_safetensors(path: Path) -> None:
    """Raise DamagedError if a whole file is not as it was written, as far as it can be known."""
    with path.open("rb", buffering=0) as file:
        check_piece(file, _only_piece(file))


class Like(NamedTuple):
    """Type and shape of a tensor."""

    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{NAMES[self.dtype]} {list(self.shape)}"


class Place(NamedTuple):
    """Where a tensor lies, in bytes from the first one of its piece."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Piece:
    """One piece of a file as its header has it; ``start`` is where it begins and ``data`` where its tensors do."""

    start: int
    head: bytes
    sha256: str | None
    """None in files of earlier versions."""
    about: Any
    tensors: dict[str, Place]
    """In the file's order."""

    @property
    def data(self) -> int:
        return self.start + len(self.head)

    @cached_property
    def end(self) -> int:
        return self.data + max((place.end for place in self.tensors.values()), default=0)

    def digest(self) -> Any:
        """The hash of the header, to go on with the tensors."""
        own = (self.sha256 or "").encode()
        return hashlib.sha256(self.head.replace(own, NO_DIGEST_YET, 1) if own else self.head)

    def check(self, digest: Any) -> None:
        """Refuse a piece whose bytes have another digest than it states."""
        if self.sha256 is not None and digest.hexdigest() != self.sha256:
            raise DamagedError("its bytes are not those that were written")


def read_piece(file: BinaryIO, start: int) -> Piece:
    """The header of the piece that begins there, found sound: all that it names is in the file."""
    head, metadata, tensors = _header(file, start)
    if not isinstance(metadata, dict) or not isinstance(metadata.get(ABOUT), str):
        raise DamagedError("it says nothing of fedfuse")
    stated = metadata.get(DIGEST)
    return Piece(start, head, None if stated is None else str(stated), _json(metadata[ABOUT]), tensors)


def read_places(path: Path) -> tuple[int, dict[str, Place]]:
    """Where the tensors of anybody's whole file begin, and where each lies from there on."""
    with path.open("rb", buffering=0) as file:
        head, _, tensors = _header(file, 0)
        end = len(head) + max((place.end for place in tensors.values()), default=0)
        if end != os.fstat(file.fileno()).st_size:
            raise DamagedError("there is more in it than its header says")
    return len(head), tensors


def is_ours(path: Path) -> bool:
    """Whether a file says of itself that fedfuse wrote it."""
    with path.open("rb", buffering=0) as file:
        metadata = _header(file, 0)[1]
    return isinstance(metadata, dict) and ABOUT in metadata


def read_numbers(path: Path, data: int, place: Place, begin: int, end: int) -> Tensor:
    """Some of a tensor's numbers in their order, of a file whose tensors begin at ``data``."""
    numbers = torch.empty(end - begin, dtype=place.dtype)
    with path.open("rb", buffering=0) as file:
        file.seek(data + place.begin + begin * place.dtype.itemsize)
        _read_into(file, _bytes_of(numbers))
    return numbers


def write_pieces(path: Path, tensors: Mapping[str, Like], pieces: Callable[[str], Iterable[Tensor]]) -> None:
    """A whole file for anybody, in place of an older one, of whose tensors only one piece is there at a time."""
    ordered = sorted(tensors, key=lambda name: (-RANKS[tensors[name].dtype], name))
    header: dict[str, Any] = {METADATA: {"format": "pt"}}
    end = 0
    for name in ordered:
        begin, end = end, end + tensors[name].nbytes
        header[name] = _entry(tensors[name].dtype, tensors[name].shape, begin, end)
    with replacing(path) as temporary, create(temporary) as file:
        file.write(_head(header))
        for name in ordered:
            for piece in pieces(name):
                file.write(_bytes_of(piece))


def read_tensors(file: BinaryIO, piece: Piece) -> dict[str, Tensor]:
    """A piece's tensors, read into memory of their own: pages of a mapped file would count as this process's."""
    digest, tensors = piece.digest(), {}
    file.seek(piece.data)
    for name, place in piece.tensors.items():
        tensors[name] = torch.empty(place.shape, dtype=place.dtype)
        memory = _bytes_of(tensors[name])
        _read_into(file, memory)
        digest.update(memory)
    piece.check(digest)
    return tensors


def check_piece(file: BinaryIO, piece: Piece) -> None:
    """The same look at its bytes, without keeping them."""
    digest, left = piece.digest(), piece.end - piece.data
    file.seek(piece.data)
    while left:
        content = _read(file, min(left, READ_AT_ONCE))
        digest.update(content)
        left -= len(content)
    piece.check(digest)


def _only_piece(file: BinaryIO) -> Piece:
    piece = read_piece(file, 0)
    if piece.end != os.fstat(file.fileno()).st_size:
        raise DamagedError("there is more in it than its header says")
    return piece


def _header(file: BinaryIO, start: int) -> tuple[bytes, Any, dict[str, Place]]:
    """The header that begins there, as it is, its metadata, and the tensors that it names, which are in the file."""
    left = os.fstat(file.fileno()).st_size - start
    file.seek(start)
    first = _read(file, LENGTH)
    length = int.from_bytes(first, "little")
    if length > min(left - LENGTH, LONGEST_HEADER):
        raise DamagedError("the file ends too early")
    head = first + _read(file, length)
    header = _parsed(head[LENGTH:])
    metadata = header.pop(METADATA, None)
    return head, metadata, _places(header, left - len(head))


def _head(header: Mapping[str, Any]) -> bytes:
    """A header as a file begins with it."""
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    return len(text).to_bytes(LENGTH, "little") + text


def _entry(dtype: torch.dtype, shape: Sequence[int], begin: int, end: int) -> dict[str, Any]:
    return {"dtype": NAMES[dtype], "shape": list(shape), "data_offsets": [begin, end]}


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        header = _json(text.decode())
    except UnicodeDecodeError:
        raise DamagedError("its header is not text") from None
    if not isinstance(header, dict):
        raise DamagedError("its header is not a mapping")
    return header


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise DamagedError("its header is not JSON") from None


def _places(header: Mapping[str, Any], available: int) -> dict[str, Place]:
    """Every tensor right behind the one before it, each as long as its type and shape ask for."""
    try:
        places = {
            name: Place(DTYPES[value["dtype"]], _shape(value["shape"]), *map(_size, value["data_offsets"]))
            for name, value in header.items()
        }
    except (KeyError, TypeError, ValueError):
        raise DamagedError("its header names tensors that there cannot be") from None
    ordered, end = dict(sorted(places.items(), key=lambda item: (item[1].begin, item[1].end))), 0
    for name, place in ordered.items():
        if (place.begin, place.end) != (end, end + math.prod(place.shape) * place.dtype.itemsize):
            raise DamagedError(f"the bytes of {name[:100]!a} are not where its header says")
        end = place.end
    if end > available:
        raise DamagedError("the file ends too early")
    return ordered


def _shape(value: Any) -> tuple[int, ...]:
    shape = tuple(map(_size, value))
    if len(shape) > MOST_DIMENSIONS:
        raise ValueError("no tensor has so many dimensions")
    _size(math.prod(size or 1 for size in shape))
    return shape


def _size(value: Any) -> int:
    if type(value) is not int or not 0 <= value < LARGEST:
        raise ValueError("not a size")
    return value


def _bytes_of(tensor: Tensor) -> memoryview:
    """The memory of a tensor, or of a contiguous copy on the CPU."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data


def _read(file: BinaryIO, length: int) -> bytes:
    """So many bytes, in as many turns as the system takes."""
    pieces = []
    while length:
        content = file.read(length)
        if not content:
            raise DamagedError("the file ends too early")
        pieces.append(content)
        length -= len(content)
    return b"".join(pieces)


def _read_into(file: BinaryIO, memory: memoryview) -> None:
    while len(memory):
        count = file.readinto(memory)  # type: ignore[attr-defined]
        if not count:
            raise DamagedError("the file ends too early")
        memory = memory[count:]
