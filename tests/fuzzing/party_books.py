"""A party's books on privacy: a file that somebody may have edited, or a disk spoiled."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import torch

from fedfuse.core.tensor_files import write_safetensors
from fedfuse.privacy.book_files import read_books, write_books
from fedfuse.privacy.books import ROWS, Books
from tests.fuzzing.mutation import bytes_of

KINDS = 2
PAGES = [{0: {(1.0, 0.5): 3, (2.0, 1.0): 1}}, {0: {(0.5, 1.0): 4}}]
NUMBERS = [-1.0, 0.5, 2.0, 7.0, 1e300, float("nan"), float("inf"), -0.0]


def honest() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        write_books(Path(folder) / "books", Books(PAGES))
        write_books(Path(folder) / "empty", Books([{}, {}]))
        return [(Path(folder) / name).read_bytes() for name in ("books", "empty")]


def mutate(rng: Random, case: bytes) -> bytes:
    """Bytes that are damaged, or a table that is whole and makes no sense."""
    if rng.random() < 0.4:
        return bytes_of(rng, case)
    rows = Books(PAGES).written()[ROWS].clone()
    for _ in range(rng.choice((0, 1, 1, 3))):
        rows[rng.randrange(len(rows)), rng.randrange(5)] = rng.choice(NUMBERS)
    shapes = [
        rows,
        rows,
        rows,
        rows[:, :3],
        rows.reshape(-1),
        rows.float(),
        rows.long(),
        torch.empty(0, 5),
        rows.bool(),
    ]
    with tempfile.TemporaryDirectory() as folder:
        write_safetensors(Path(folder) / "books", {ROWS: rng.choice(shapes).contiguous()}, {})
        return (Path(folder) / "books").read_bytes()


def read(case: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "books"
        path.write_bytes(case)
        books = read_books(path, KINDS)
        for about in range(KINDS):
            for release in books.of(0, about):
                assert release.multiplier >= 0
                assert 0 <= release.rate <= 1
