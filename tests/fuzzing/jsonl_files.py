"""Objects of JSON, one per line."""

from __future__ import annotations

from random import Random

from tests.fuzzing.mutation import text_of
from tests.fuzzing.place import written
from tests.fuzzing.tables import load_file

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
    words = "".join(
        f'{{"sex": "{"fm"[row % 2]}", "age": {row}, "ill": true, "label": {row % 3}}}\n' for row in range(9)
    )
    return [texts.encode(), numbers.encode(), words.encode()]


def mutate(rng: Random, case: bytes) -> bytes:
    return text_of(rng, case.decode(), WORDS).encode("utf-8", "surrogatepass")


def read(case: bytes) -> None:
    load_file("jsonl", written("lines.jsonl", case), empty_cells="fill" if b"sex" in case else "refuse")
