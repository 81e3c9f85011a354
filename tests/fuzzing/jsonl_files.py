"""Objects of JSON, one per line."""

from __future__ import annotations

from random import Random

from fedfuse.data.readers import Reading
from fedfuse.data.readers.jsonl import read_jsonl
from fedfuse.data.tokens import TextSettings, tokenizer_of
from tests.fuzzing.mutation import text_of
from tests.fuzzing.place import written

READING = Reading(tokenizer=tokenizer_of(TextSettings()))
WORDS = (
    '"label"',
    '"text"',
    "{",
    "}",
    "[",
    "]",
    "[" * 3000,
    '{"a":' * 3000,
    '"label": 1,',
    "\\ud800",
    "null",
    "\n",
    '"',
)


def honest() -> list[bytes]:
    texts = "".join(f'{{"text": "it is {row}", "label": {row % 3}}}\n' for row in range(9))
    numbers = "".join(f'{{"features": [{row}, 0.5], "label": {row % 3}, "who": "a"}}\n' for row in range(9))
    return [texts.encode(), numbers.encode()]


def mutate(rng: Random, case: bytes) -> bytes:
    return text_of(rng, case.decode(), WORDS).encode("utf-8", "surrogatepass")


def read(case: bytes) -> None:
    read_jsonl([written("lines.jsonl", case)], READING)
