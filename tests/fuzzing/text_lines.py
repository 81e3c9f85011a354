"""Sentences, one per line."""

from __future__ import annotations

from random import Random

from fedfuse.data.readers import Reading
from fedfuse.data.tokens import TextSettings, tokenizer_of
from fedfuse.data.unlabelled import read_unlabelled
from tests.fuzzing.mutation import bytes_of
from tests.fuzzing.place import written

READING = Reading(tokenizer=tokenizer_of(TextSettings()))


def honest() -> list[bytes]:
    return ["one sentence\nanother – with é\n\n  \nlast".encode(), b"x" * 5000]


def mutate(rng: Random, case: bytes) -> bytes:
    return bytes_of(rng, case)


def read(case: bytes) -> None:
    read_unlabelled(written("lines.txt", case), READING)
