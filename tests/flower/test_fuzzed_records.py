"""Damaged records are read or refused, and nothing else happens."""

from __future__ import annotations

import time
from random import Random

from fedfuse.core.errors import FedfuseError
from tests.fuzzing import records

CASES = 6000


def test_honest_records_are_read():
    for case in records.honest():
        records.read(case)


def test_damaged_records_are_read_or_refused():
    honest, sentences, slowest = records.honest(), {}, 0.0
    for number in range(CASES):
        rng = Random(number)
        case = records.mutate(rng, rng.choice(honest))
        began = time.perf_counter()
        try:
            records.read(case)
        except FedfuseError as error:
            sentences[number] = str(error)
        slowest = max(slowest, time.perf_counter() - began)
    assert CASES / 4 < len(sentences) < CASES
    assert {number: said for number, said in sentences.items() if len(said) > 250 or not said.isprintable()} == {}
    assert slowest < 2
