"""Tensors and one JSON value in one safetensors file: no pickle, and the same bytes for the same content.

Files are written here and not by the library, which would copy all tensors into one piece of memory first. A file has
eight bytes that say how long its header is, a header in JSON, and then the bytes of one tensor after another:

    {"__metadata__": {"fedfuse": ...}, name: {"dtype": "F32", "shape": [...], "data_offsets": [begin, end]}, ...}

Several such pieces may follow one another in a file, because each says where it ends.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors import safe_open
from torch import Tensor

from fedfuse.core.files import replacing
from fedfuse.core.plain_json import dumps

ABOUT, METADATA = "fedfuse", "__metadata__"
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


def write_safetensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """A whole file, in place of an older one."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        write_tensors(file, tensors, about)


def write_tensors(file: BinaryIO, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> int:
    """Append one piece to an open file, one tensor after another; how many bytes it has.

    One metadata key only, as the library writes them in no fixed order.
    """
    ordered = sorted(tensors.items(), key=lambda item: (-RANKS[item[1].dtype], item[0]))
    header: dict[str, Any] = {METADATA: {ABOUT: dumps(about)}}
    end = 0
    for name, tensor in ordered:
        begin, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    file.write(len(text).to_bytes(LENGTH, "little") + text)
    for _, tensor in ordered:
        file.write(_bytes_of(tensor))
    return LENGTH + len(text) + end


def read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a whole file, and what it says about them."""
    with safe_open(path, framework="pt") as file:
        about = json.loads(file.metadata()[ABOUT])
        return {name: file.get_tensor(name) for name in file.keys()}, about  # noqa: SIM118 - not a mapping


@dataclass(frozen=True)
class Piece:
    """One piece of a file as its header has it; ``start`` is where it begins and ``data`` where its tensors do."""

    start: int
    data: int
    header: Mapping[str, Any]

    @cached_property
    def about(self) -> Any:
        return json.loads(self.header[METADATA][ABOUT])

    @cached_property
    def tensors(self) -> dict[str, Any]:
        return {name: value for name, value in self.header.items() if name != METADATA}

    @property
    def end(self) -> int:
        return self.data + max((value["data_offsets"][1] for value in self.tensors.values()), default=0)


def read_piece(file: BinaryIO, start: int) -> Piece:
    """The header of the piece that begins there."""
    file.seek(start)
    length = int.from_bytes(_read(file, LENGTH), "little")
    return Piece(start, start + LENGTH + length, json.loads(_read(file, length)))


def read_tensors(file: BinaryIO, piece: Piece) -> dict[str, Tensor]:
    """A piece's tensors, read into memory of their own: pages of a mapped file would count as this process's."""
    return {name: _read_tensor(file, piece.data, value) for name, value in piece.tensors.items()}


def _read_tensor(file: BinaryIO, data: int, value: Mapping[str, Any]) -> Tensor:
    begin, end = value["data_offsets"]
    tensor = torch.empty(value["shape"], dtype=DTYPES[value["dtype"]])
    if end - begin != math.prod(value["shape"]) * tensor.element_size():
        raise ValueError("a tensor has not the length that its shape asks for")
    file.seek(data + begin)
    _read_into(file, _bytes_of(tensor))
    return tensor


def _bytes_of(tensor: Tensor) -> memoryview:
    """The memory of a tensor, or of a contiguous copy on the CPU."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data


def _read(file: BinaryIO, length: int) -> bytes:
    content = file.read(length)
    if len(content) != length:
        raise ValueError("the file ends too early")
    return content


def _read_into(file: BinaryIO, memory: memoryview) -> None:
    while len(memory):
        count = file.readinto(memory)  # type: ignore[attr-defined]
        if not count:
            raise ValueError("the file ends too early")
        memory = memory[count:]
