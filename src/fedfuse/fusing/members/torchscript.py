"""TorchScript: a program with its weights in one file. It runs as it is given, so give only one that you trust."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch

from fedfuse.core.errors import DataError
from fedfuse.data.dataset import InputKind
from fedfuse.fusing.members.asking import voice_of
from fedfuse.fusing.members.base import About, Member, Voice
from fedfuse.fusing.members.files import in_brief, sha256_of_files
from fedfuse.fusing.members.inputs import Preparation
from fedfuse.fusing.members.pickled import DAMAGED, check_archive, entries
from fedfuse.fusing.members.said import Said
from fedfuse.fusing.members.state_dict import rows_of_last
from fedfuse.fusing.members.tensors import common_dtype
from fedfuse.models.export.graph import INPUTS
from fedfuse.models.export.quiet import quietly

RAW = "raw"
"""A normalisation that is none: bytes go in."""
LONGEST_CODE = 100_000_000
"""Bytes of a program, which unlike weights is compressed."""
LONGEST = 1_000_000
"""Bytes of what a file says of itself."""
SAID = re.compile(rf"{INPUTS}: (\w+) N((?: x \d+)+)")
KINDS: Mapping[tuple[str, int], InputKind] = {
    ("uint8", 3): "images",
    ("float32", 1): "numbers",
    ("float32", 3): "images",
}


class Exported(NamedTuple):
    """What a file that ``fedfuse export`` wrote says of itself."""

    dtype: str
    shape: tuple[int, ...]
    class_names: tuple[str, ...]

    def preparation(self, path: Path) -> Preparation:
        """Raw inputs as they are: the normalisation is inside."""
        kind = KINDS.get((self.dtype, len(self.shape)))
        if kind is None:
            raise DataError(f"{path} reads the numbers of tokens, and not texts; give the model that was exported")
        return Preparation(kind, self.shape, None, as_bytes=True)


def exported(said: Mapping[str, str], path: Path) -> Exported | None:
    """Read from the metadata of an exported file; None for files of others."""
    form = SAID.fullmatch(said.get(INPUTS, ""))
    if form is None:
        return None
    try:
        names = json.loads(said["classes"])
        return Exported(form[1], tuple(map(int, form[2].split(" x ")[1:])), tuple(map(str, names)))
    except (KeyError, ValueError, TypeError, RecursionError):
        raise DataError(f"{path} says in a damaged way what it reads; export it again") from None


class TorchScriptMember(Member):
    """Only its voice is known."""

    def __init__(self, path: Path, said: Said) -> None:
        self.path = path
        check_archive(path, LONGEST_CODE)
        ours = exported(_said(path), path)
        if ours is not None:
            self._preparation = ours.preparation(path)
        else:
            self._preparation = preparation_of(said, said.shape)
        names = ours.class_names if ours is not None else None
        program = self._program()
        state = program.state_dict()
        shapes = {key: tuple(tensor.shape) for key, tensor in state.items()}
        count = said.class_count or (len(names) if names else rows_of_last(shapes, said.name))
        self.about = About(
            name=said.name,
            origin=str(path),
            format="TorchScript",
            architecture=str(getattr(program, "original_name", "TorchScript")),
            reads=self._preparation.reads,
            shape=self._preparation.shape,
            classes=count,
            class_names=said.class_names(count, names),
            parameters=sum(tensor.numel() for tensor in state.values() if tensor.is_floating_point()),
            dtype=common_dtype({key: tensor.dtype for key, tensor in state.items()}, shapes),
            sha256=sha256_of_files([path]),
            licence=said.licence,
            notes=self._preparation.notes,
        )

    @contextmanager
    def speaking(self, device: torch.device) -> Iterator[Voice]:
        program = self._program().to(device).eval()
        yield voice_of(program, lambda raw: self._preparation(raw, self.about.name), self.about, device)

    def _program(self) -> Any:
        try:
            with quietly():
                return torch.jit.load(self.path, map_location="cpu")
        except Exception as error:  # torch raises its own errors for what is damaged or too new
            raise DataError(f"{self.path} cannot be loaded as TorchScript ({in_brief(error)})") from None


def preparation_of(said: Said, shape: tuple[int, ...] | None) -> Preparation:
    """For a program of others: as the caller says."""
    kind: InputKind = said.reads or ("numbers" if shape is not None and len(shape) == 1 else "images")
    as_bytes = said.normalise == RAW
    return Preparation(kind, shape, None if as_bytes else said.normalise, as_bytes)


def is_torchscript(path: Path) -> bool:
    """Whether an archive holds a program beside its weights."""
    names = [one.filename for one in entries(path)]
    return any(name.endswith("/constants.pkl") for name in names) and any("/code/" in name for name in names)


def _said(path: Path) -> dict[str, str]:
    """The extra files of the archive."""
    said = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for one in archive.infolist():
                folder, _, key = one.filename.rpartition("/extra/")
                if folder and one.file_size <= LONGEST and one.compress_type == zipfile.ZIP_STORED:
                    said[key] = archive.read(one).decode("utf-8", "replace")
    except DAMAGED as error:
        raise DataError(f"{path} is a damaged archive ({in_brief(error)}); fetch it again") from None
    return said
