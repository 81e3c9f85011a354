"""Sentences, one per line."""

from __future__ import annotations

from random import Random

from fedfuse.data.unlabelled import read_unlabelled
from tests.fuzzing.jsonl_files import READING
from tests.fuzzing.mutation import bytes_of
from tests.fuzzing.place import written


def honest() -> list[bytes]:
    return ["one sentence\nanother – with é\n\n  \nlast".encode(), b"x" * 5000]


def mutate(rng: Random, case: bytes) -> bytes:
    return bytes_of(rng, case)


def read(case: bytes) -> None:
    read_unlabelled(written("lines.txt", case), READING)
