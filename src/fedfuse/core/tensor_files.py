"""Tensors and one JSON value in one safetensors file: no pickle, and the same bytes for the same content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from fedfuse.core.files import write_bytes
from fedfuse.core.plain_json import dumps


def write_safetensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """One metadata key only: the file's bytes must not depend on a hash map's order."""
    write_bytes(path, save({name: t.contiguous().clone() for name, t in tensors.items()}, {"fedfuse": dumps(about)}))


def read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    with safe_open(path, framework="pt") as file:
        about = json.loads(file.metadata()["fedfuse"])
        return {name: file.get_tensor(name) for name in file.keys()}, about  # noqa: SIM118 - not a mapping
