"""Hashes of tensors and files, wherever contents have to be recognised again or put into an order of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor


def sha256_of(*tensors: Tensor) -> str:
    """Of the bytes of these tensors, one after the other; their types and shapes do not count."""
    return sha256_of_all(tensors)


def sha256_of_all(tensors: Iterable[Tensor]) -> str:
    """The same of tensors that need not all be there at a time."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.contiguous().numpy().data)
    return digest.hexdigest()


def sha256_of_file(path: Path) -> str:
    """Of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def order_of(rows: Tensor) -> Tensor:
    """Positions of the rows in an order that looks random and depends on their contents alone, not on their places."""
    table = rows.contiguous().reshape(len(rows), -1).numpy()
    keys = [hashlib.blake2b(row.data, digest_size=16).digest() for row in table]
    return torch.tensor(sorted(range(len(keys)), key=keys.__getitem__), dtype=torch.long)
