"""Experiments as texts in YAML."""

from __future__ import annotations

from random import Random

import yaml

from fedfuse.experiment import presets
from fedfuse.experiment.config import read_yaml, validate
from tests.fuzzing.experiment_values import honest as experiments
from tests.fuzzing.mutation import text_of
from tests.fuzzing.place import written

MERGED = """
data: {name: digits}
models: {a: &small {arch: mlp, hidden: [8]}, b: {<<: *small, hidden: [4]}}
"""
WORDS = (
    "&a ",
    "*a",
    "<<: ",
    "<<: *a",
    "? ",
    "- ",
    "|\n",
    ">-\n",
    "!!binary ",
    "!!set ",
    "!!int ",
    "!!python/object:os.system ",
    "!<tag:yaml.org,2002:merge> ",
    "%YAML 9.9\n---\n",
    "---\n",
    "...\n",
    "{",
    "}",
    "[",
    "]",
    "[" * 3000,
    "{a: " * 60,
    '"\\ud800"',
    '"\\UFFFFFFFF"',
    '"\\ud83d\\ude00"',
    "&a [*a]",
    "\t",
    "\ufeff",
    ": ",
    "=: ",
    "2024-01-01T00:00:00Z",
    "&a [1,1,1,1,1,1,1,1,1]",
    "&b [*a,*a,*a,*a,*a,*a,*a]",
    "*b",
)


def honest() -> list[bytes]:
    texts = [presets.text(name) for name in presets.names()]
    dumped = [yaml.safe_dump(case, sort_keys=False) for case in experiments()]
    return [text.encode() for text in (*texts, *dumped, MERGED)]


def mutate(rng: Random, case: bytes) -> bytes:
    return text_of(rng, case.decode(), WORDS).encode("utf-8", "surrogatepass")


def read(case: bytes) -> None:
    path = written("experiment.yaml", case)
    validate(read_yaml(path), str(path))
