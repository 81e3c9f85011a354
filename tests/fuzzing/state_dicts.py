"""State dicts as torch.save writes them, in both of its formats, and as safetensors."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import torch
from safetensors.torch import save

from fedfuse.core.randomness import Key
from fedfuse.models import Mlp, create
from tests.fuzzing.models_of_others import CANARY, opened_and_asked
from tests.fuzzing.mutation import bytes_of, value_of
from tests.fuzzing.place import place, written

Case = tuple[str, bytes]
"""The name of a file, and what is in it."""
ARCH = {"arch": "mlp", "hidden": [4]}


class Evil:
    """What runs when somebody unpickles it."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return open, (str(place(CANARY)), "w")


def honest() -> list[Case]:
    state = _state()
    return [("net.pt", _saved(state)), ("net.pt", _saved(state, zipped=False)), ("net.safetensors", save(state))]


@cache
def _state() -> dict[str, torch.Tensor]:
    return dict(create(Mlp(hidden=(4,)), (3, 8, 8), 3, Key(0)).state_dict())


def _saved(content: Any, zipped: bool = True) -> bytes:
    file = io.BytesIO()
    torch.save(content, file, _use_new_zipfile_serialization=zipped)
    return file.getvalue()


def mutate(rng: Random, case: Case) -> Case:
    name, content = case
    match rng.randrange(8):
        case 0:
            return name, pickle.dumps({"a": Evil()})
        case 1:
            return name, _saved({**_state(), "evil": Evil()}, zipped=rng.random() < 0.5)
        case 2:
            return name, _bomb(content) if content.startswith(b"PK") else bytes_of(rng, content)
        case 3:
            return name, _saved(value_of(rng, dict(_state()), (torch.zeros(0), torch.zeros(1).expand(10**9))))
        case 4:
            return name, _saved({rng.choice(("model", "state_dict", "junk")): _state()})
        case 5:
            return rng.choice(("net.onnx", "net.bin", "net.zip", "net")), content
        case _:
            return name, bytes_of(rng, content)


def _bomb(archive: bytes) -> bytes:
    """The same files with compressed zeros among them."""
    file = io.BytesIO(archive)
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("archive/data/99", bytes(30_000_000))
    return file.getvalue()


def read(case: Case) -> None:
    name, content = case
    opened_and_asked(written(name, content), arch=ARCH, shape=(3, 8, 8), normalise="half")
