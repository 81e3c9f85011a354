"""What the final models of a run take each class for."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from random import Random

import torch

from fedfuse.federation import confusion
from tests.fuzzing.checkpoint import as_json
from tests.fuzzing.mutation import bytes_of, value_of
from tests.fuzzing.place import written


def honest() -> list[bytes]:
    answers, labels = torch.tensor([0, 1, 1, 2, 0]), torch.tensor([0, 1, 2, 2, 0])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "confusion.json"
        confusion.write(path, {name: confusion.Confusion.of(answers, labels, 3) for name in ("small", "wide")})
        return [path.read_bytes()]


def mutate(rng: Random, case: bytes) -> bytes:
    if rng.random() < 0.5:
        return bytes_of(rng, case)
    return json.dumps(as_json(value_of(rng, json.loads(case)))).encode()


def read(case: bytes) -> None:
    for own in confusion.read(written("confusion.json", case)).values():
        assert all(share is None or 0 <= share <= 1 for share in own.accuracies)
