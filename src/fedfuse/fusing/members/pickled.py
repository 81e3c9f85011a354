"""State dicts that torch.save wrote, read without running anything that lies in them."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fedfuse.core.errors import DataError
from fedfuse.fusing.members.files import first_bytes, in_brief
from fedfuse.fusing.members.tensors import PREFIXES
from fedfuse.models.export.quiet import quietly

WRAPPERS = ("state_dict", "model_state_dict", "model", "net", "network", "ema_state_dict")
"""Keys under which training scripts keep the weights, beside their optimiser."""
ZIP = b"PK\x03\x04"
"""How archives begin."""
DAMAGED = (zipfile.BadZipFile, OSError, ValueError, RuntimeError, EOFError)
"""What reading an archive may raise: names that are no text, passwords, methods that are not known."""


def read_pickled(path: Path) -> dict[str, Tensor]:
    """The tensors by name; everything but tensors and plain values is refused by torch itself."""
    check_archive(path)
    try:
        with quietly():
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch and its unpickler raise nearly anything
        reason = in_brief(error)
        if "weights_only" in str(error) or "Unsupported" in str(error):
            raise DataError(
                f"{path} holds Python objects and not only weights, and is not read because that could run code; save "
                "model.state_dict() instead of the model"
            ) from None
        raise DataError(f"{path} cannot be read as weights ({reason})") from None
    return _plain(_unwrapped(content, path), path)


def entries(path: Path) -> list[zipfile.ZipInfo]:
    """What lies in an archive of torch."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.infolist()
    except DAMAGED as error:
        raise DataError(f"{path} is a damaged archive ({in_brief(error)}); fetch it again") from None


def check_archive(path: Path, most_unpacked: int = 0) -> None:
    """Torch stores weights without compressing them, so that nothing in a file is larger than the file."""
    if first_bytes(path, len(ZIP)) != ZIP:
        return
    packed = [one for one in entries(path) if one.compress_type != zipfile.ZIP_STORED]
    whole = sum(one.file_size for one in entries(path) if one.compress_type == zipfile.ZIP_STORED)
    if whole > path.stat().st_size or sum(one.file_size for one in packed) > most_unpacked:
        raise DataError(f"{path} is compressed, as torch never writes weights; fetch it again")


def _unwrapped(content: Any, path: Path) -> Mapping[Any, Any]:
    """The mapping of tensors, which may lie inside another."""
    for _ in range(3):
        if isinstance(content, Mapping) and any(isinstance(value, Tensor) for value in content.values()):
            return content
        inner = next((key for key in WRAPPERS if isinstance(content, Mapping) and key in content), None)
        if inner is None:
            break
        content = content[inner]
    raise DataError(f"{path} holds no weights by name; save model.state_dict()")


def _plain(state: Mapping[Any, Any], path: Path) -> dict[str, Tensor]:
    tensors = {}
    for name, value in state.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise DataError(
                f"{path} holds '{str(name)[:100]}' among its weights, which is no tensor; save a state dict"
            )
        if value.layout != torch.strided or value.is_meta or value.is_quantized:
            raise DataError(f"{path}: '{name[:100]}' is sparse, quantised or empty; save plain weights")
        if value.numel() * value.element_size() > value.untyped_storage().nbytes():
            raise DataError(f"{path}: '{name[:100]}' claims to be larger than what is stored of it")
        tensors[name] = value.detach()
    return without_prefix(tensors)


def without_prefix(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Names as the network itself has them."""
    for prefix in PREFIXES:
        if tensors and all(name.startswith(prefix) for name in tensors):
            tensors = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    return tensors
