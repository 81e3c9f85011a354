"""TorchScript: archives of which any piece may be damaged. What it computes is its author's affair; and what torch does
with pickles that were forged with right checksums, which can end the process, is a reason to open none of strangers."""

from __future__ import annotations

import io
import warnings
import zipfile
from functools import cache
from random import Random

import torch
from torch import nn

from fedfuse.models.export.graph import INPUTS
from tests.fuzzing.models_of_others import opened_and_asked
from tests.fuzzing.mutation import bytes_of, text_of
from tests.fuzzing.place import written

WORDS = ("self", "torch.conv2d", "ops.evil.run", "while True:", "Tensor", "return", "import", "open", "torch.save")


def honest() -> list[bytes]:
    return [_program(False), _program(True)]


@cache
def _program(ours: bool) -> bytes:
    """A matrix; with what ``fedfuse export`` says of its own files, or without."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(192, 3)).eval()
    said = {INPUTS: "float32 N x 3 x 8 x 8", "classes": '["a", "b", "c"]'} if ours else {}
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.trace(network, torch.zeros(2, 3, 8, 8)), file, _extra_files=said)
    return file.getvalue()


def mutate(rng: Random, case: bytes) -> bytes:
    """Half of the time one of the files inside is another one, with a right checksum."""
    if rng.random() < 0.5:
        return bytes_of(rng, case)
    with zipfile.ZipFile(io.BytesIO(case)) as archive:
        files = {one.filename: archive.read(one) for one in archive.infolist()}
    plain = [name for name in files if not name.endswith(".pkl")]
    name = rng.choice([name for name in plain for _ in range(3 if "code" in name or "extra" in name else 1)])
    if name.endswith(".py") or "extra" in name:
        changed = text_of(rng, files[name].decode("utf-8", "replace"), WORDS).encode("utf-8", "surrogatepass")
    else:
        changed = bytes_of(rng, files[name])
    if rng.random() < 0.1:
        del files[name]
    else:
        files[name] = changed
    return _packed(files, zipfile.ZIP_DEFLATED if rng.random() < 0.2 else zipfile.ZIP_STORED)


def _packed(files: dict[str, bytes], method: int) -> bytes:
    """Aligned as torch has it, which reads no others."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in files.items():
            one = zipfile.ZipInfo(name)
            one.compress_type = method
            padding = -(file.tell() + 30 + len(name) + 4) % 64
            one.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
            archive.writestr(one, content)
    return file.getvalue()


def read(case: bytes) -> None:
    opened_and_asked(written("model.pt", case), shape=(3, 8, 8), normalise="half", classes=3)
