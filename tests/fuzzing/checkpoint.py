"""A run's checkpoint, its clients' states and its log: the same snapshot, or a refusal, and never another snapshot."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from fedfuse.core.tensor_files import read_safetensors, write_safetensors
from fedfuse.federation import Snapshot
from fedfuse.federation.checkpoint import load_checkpoint
from tests.federation.test_checkpoint import LOG, RICH, STATES, assert_same, saved, snapshot_of
from tests.fuzzing.mutation import bytes_of, value_of
from tests.fuzzing.place import place

NEWEST = "round-000002.safetensors"


class Case(NamedTuple):
    """The files of a folder; one that is forged has the digest of whatever it says."""

    files: dict[str, bytes]
    is_forged: bool = False


@cache
def _honest() -> Case:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        saved(folder, snapshot_of(1, RICH, STATES), snapshot_of(2, RICH, {0: STATES[12]}))
        (folder / "round-000001.safetensors").unlink()
        return Case({str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()})


@cache
def _expected() -> Snapshot:
    return snapshot_of(2, RICH, {**STATES, 0: STATES[12]})


def honest() -> list[Case]:
    return [_honest()]


def mutate(rng: Random, case: Case) -> Case:
    files = dict(case.files)
    if rng.random() < 0.3:
        return Case({**files, NEWEST: _forged(rng, files[NEWEST])}, is_forged=True)
    name = rng.choice(list(files))
    return Case({**files, name: bytes_of(rng, files[name])})


def _forged(rng: Random, content: bytes) -> bytes:
    path = place("forged.safetensors")
    path.write_bytes(content)
    tensors, about = read_safetensors(path)
    write_safetensors(path, tensors, as_json(value_of(rng, about)))
    return path.read_bytes()


def as_json(value: Any) -> Any:
    """What of a value JSON can say."""
    if isinstance(value, dict):
        return {str(as_json(key)): as_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(inner) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return min(value, 10**4000)
    return value if isinstance(value, str | float | None | bool) else type(value).__name__


def read(case: Case) -> None:
    folder = place("run")
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in case.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    found = load_checkpoint(folder, "id", folder / LOG)
    assert found is not None, "what is there is not taken for nothing"
    if not case.is_forged:
        assert_same(found.snapshot, _expected())
