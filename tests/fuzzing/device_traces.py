"""Devices of a simulated clock, in CSV or JSON Lines."""

from __future__ import annotations

from random import Random

from fedfuse.federation.clock.trace import read_trace
from tests.fuzzing.jsonl_files import WORDS
from tests.fuzzing.mutation import text_of
from tests.fuzzing.place import written

PERIOD = 86400.0


def honest() -> list[bytes]:
    return [
        b"speed,down,up,latency,present\n2.1e9,1.5e6,4e5,0.08,0-28800 79200-86400\n1,2,3,,\n",
        b'{"speed": 2.1e9, "down": 1.5e6, "up": 4e5, "latency": 0.08, "present": [[0, 28800]]}\n',
    ]


def mutate(rng: Random, case: bytes) -> bytes:
    return text_of(rng, case.decode(), (*WORDS, "0-86400", "5-1", "speed", "x" * 140_000)).encode(
        errors="surrogatepass"
    )


def read(case: bytes) -> None:
    suffix = "jsonl" if case.startswith(b"{") else "csv"
    read_trace(written(f"devices.{suffix}", case), PERIOD)
