"""The file of a model: its bytes, and whatever a stranger may have written into it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any

import torch

import fedfuse
from fedfuse.core.randomness import Key
from fedfuse.core.tensor_files import read_safetensors, write_safetensors
from fedfuse.core.text import TextShape
from fedfuse.core.weights import Weights
from fedfuse.models import Architecture, Cnn, Mlp, TextTransformer, create
from fedfuse.models.saved import save_model
from tests.fuzzing.checkpoint import as_json
from tests.fuzzing.mutation import bytes_of, value_of
from tests.fuzzing.place import place, written

MODELS: list[tuple[Architecture, tuple[int, ...]]] = [
    (Mlp(hidden=(4, 3)), (2,)),
    (Cnn(arch="cnn1"), (1, 8, 8)),
    (TextTransformer(width=4, heads=2, layers=1), TextShape(length=5, vocabulary=7)),
]
LARGE: tuple[Any, ...] = (10**9, 10**12, [10**9], [10**6, 10**6], [4] * 10_000, "os:system", {"arch": "own"})


def honest() -> list[bytes]:
    return [_saved(architecture, shape) for architecture, shape in MODELS]


def _saved(architecture: Architecture, shape: tuple[int, ...]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save_model(path, architecture, shape, 3, Weights.of(create(architecture, shape, 3, Key(0))))
        return path.read_bytes()


def mutate(rng: Random, case: bytes) -> bytes:
    if rng.random() < 0.4:
        return bytes_of(rng, case)
    tensors, about = read_safetensors(written("forged", case))
    name = rng.choice(list(tensors))
    match rng.randrange(8):
        case 0:
            tensors[name] = tensors[name].to(rng.choice((torch.int64, torch.float64, torch.complex64, torch.bool)))
        case 1:
            tensors[name] = tensors[name] * rng.choice((float("nan"), float("inf")))
        case 2:
            tensors[rng.choice(("more", "", "\ud800"))] = tensors.pop(name)
        case 3:
            tensors[name] = tensors[name][..., :-1]
        case _:
            about = value_of(rng, about, LARGE)
    return _written(tensors, about)


def _written(tensors: dict[str, torch.Tensor], about: Any) -> bytes:
    try:
        write_safetensors(place("forged"), tensors, as_json(about))
    except UnicodeEncodeError:
        return b""
    return place("forged").read_bytes()


def read(case: bytes) -> None:
    model = fedfuse.load_model(written("model.safetensors", case))
    assert all(parameter.isfinite().all() for parameter in model.parameters())
