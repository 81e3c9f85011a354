"""The file of a model: its bytes, and whatever a stranger may have written into it."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import torch

import fedfuse
from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.core.tensor_files import read_safetensors, write_safetensors
from fedfuse.core.text import TextShape
from fedfuse.core.weights import Weights
from fedfuse.data.raw import RawTable
from fedfuse.data.readers.encoding import Column, Encoding
from fedfuse.models import Architecture, Cnn, Mlp, TextTransformer, create
from fedfuse.models.interface import Interface
from fedfuse.models.saved import save_model
from tests.fuzzing.checkpoint import as_json
from tests.fuzzing.mutation import bytes_of, value_of
from tests.fuzzing.place import place, written

MODELS: list[tuple[Architecture, tuple[int, ...]]] = [
    (Mlp(hidden=(4, 3)), (2,)),
    (Cnn(arch="cnn1"), (1, 8, 8)),
    (TextTransformer(width=4, heads=2, layers=1), TextShape(length=5, vocabulary=7)),
]
ENCODING = Encoding(
    columns=(
        Column(name="age", fill=50.0),
        Column(name="sex", kind="category", categories=("f", "m")),
        Column(name="ill", kind="truth", fill=0.0),
    ),
    fills=True,
    empty_values=("?",),
)
TABLE = Interface(
    inputs=RawTable(mean=(50.0, 0.0, 0.0, 0.0), std=(9.0, 1.0, 1.0, 1.0), encoding=ENCODING, beside=("label",)),
    class_names=("1", "2", "3"),
    label_kind="numbers",
)
ROWS: tuple[Any, ...] = ({"age": 40, "sex": "f", "ill": True}, [[None, "m", False]], [[1.0, 2.0, 3.0]])
LARGE: tuple[Any, ...] = (10**9, 10**12, [10**9], [10**6, 10**6], [4] * 10_000, "os:system", {"arch": "own"})


def honest() -> list[bytes]:
    return [*(_saved(architecture, shape) for architecture, shape in MODELS), _saved(Mlp(hidden=(4,)), (4,), TABLE)]


def _saved(architecture: Architecture, shape: tuple[int, ...], interface: Interface | None = None) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save_model(path, architecture, shape, 3, Weights.of(create(architecture, shape, 3, Key(0))), interface)
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
    if model.predictor is not None and model.predictor.interface.inputs.kind == "table":
        for rows in ROWS:
            with suppress(DataError):
                assert len(model.predict(rows)) == 1
