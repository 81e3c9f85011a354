"""Which reader a trained model needs: found by looking at it, never by trying one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from fedfuse.core.errors import ConfigError, DataError, shortened
from fedfuse.core.paths import expanded
from fedfuse.data.dataset import InputKind
from fedfuse.fusing.members.base import Member
from fedfuse.fusing.members.files import first_bytes
from fedfuse.fusing.members.huggingface.folder import CONFIG, Folder
from fedfuse.fusing.members.huggingface.member import HuggingFaceMember
from fedfuse.fusing.members.inputs import Normalise
from fedfuse.fusing.members.licences import origins_in
from fedfuse.fusing.members.module import FunctionMember, ModuleMember
from fedfuse.fusing.members.onnx import OnnxMember
from fedfuse.fusing.members.pickled import ZIP, entries
from fedfuse.fusing.members.said import Arch, Gives, Said
from fedfuse.fusing.members.saved import SavedMember, model_in
from fedfuse.fusing.members.state_dict import StateDictMember, is_safetensors
from fedfuse.fusing.members.tensors import is_of_fedfuse
from fedfuse.fusing.members.torchscript import TorchScriptMember, is_torchscript

ADAPTER = "adapter_config.json"
HEAD = 64
"""Bytes that tell what a file is."""
MARKS: Mapping[bytes, str] = {
    b"GGUF": "a GGUF file of llama.cpp, which only runs there; give the model that it was made from",
    b"\x89HDF": "an HDF5 file of Keras; export the model to ONNX",
    b"\x93NUM": "a NumPy array; give the model's weights as safetensors",
    b"\x1f\x8b": "a gzip archive; unpack it",
    b"BZh": "a bzip2 archive; unpack it",
    b"7z": "a 7-Zip archive; unpack it",
    b"version https://git-lfs": "the note that Git LFS leaves in place of a file; fetch the file (git lfs pull)",
}
"""How files begin that are no models for us, and what they are."""
FOLDERS: Mapping[str, str] = {
    "model_index.json": "a pipeline of diffusers, which is no classifier",
    "modules.json": "a sentence encoder, which is no classifier; it can be a student",
    "saved_model.pb": "a model of TensorFlow; export it to ONNX",
}


def open_member(
    what: str | Path | nn.Module | Callable[..., Any] | Member,
    *,
    name: str | None = None,
    arch: Arch | None = None,
    normalise: Normalise | None = None,
    classes: Sequence[str] | int | None = None,
    licence: str | None = None,
    shape: Sequence[int] | None = None,
    gives: Gives | None = None,
    reads: InputKind | None = None,
    trust_own_code: bool = False,
    base: str | Path | None = None,
) -> Member:
    """A trained model, whatever it lies in: a file, a folder, or something from Python.

    ``arch`` says which network weights alone belong to; ``normalise``, ``shape`` and ``classes`` what a file does not
    say itself; ``gives`` whether a graph answers with logits or probabilities; ``base`` where the model lies that an
    adapter was trained from.
    """
    if isinstance(what, Member):
        return what
    sides = None if shape is None else tuple(shape)
    said = Said(_name(what, name), arch, normalise, classes, licence, sides, gives, reads, trust_own_code, base)
    if isinstance(what, nn.Module):
        return ModuleMember(what, said)
    if isinstance(what, str | Path):
        return _at(expanded(str(what), "model"), said)
    if callable(what):
        return FunctionMember(what, said)
    raise ConfigError(f"a value of type {type(what).__name__} is no model; give a path, a module or a function")


def _at(path: Path, said: Said) -> Member:
    if not path.exists() and not path.is_symlink():
        raise DataError(f"{path} does not exist; models are files or folders here, and none is downloaded")
    if path.is_dir():
        return _in_folder(path, said)
    head = first_bytes(path, HEAD)
    if path.suffix == ".onnx":
        return OnnxMember(path, said)
    if head.startswith(ZIP):
        return _in_archive(path, said)
    if is_safetensors(head):
        return _in_safetensors(path, said)
    if head[:1] == b"\x80":  # a pickle, as torch wrote before version 1.6
        return StateDictMember(path, said)
    raise DataError(f"{path} is {_told(head)}")


def _in_folder(path: Path, said: Said) -> Member:
    if (path / ADAPTER).is_file():
        return _adapter(path, said)
    if (path / CONFIG).is_file():
        return HuggingFaceMember(Folder.open(path), said)
    for file, told in FOLDERS.items():
        if (path / file).is_file():
            raise DataError(f"{path} holds {told}")
    model = model_in(path)
    if is_of_fedfuse(model):
        return SavedMember(model, replace(said, licence=said.licence or origins_in(path).licence))
    raise DataError(f"{path} holds weights ({model.name}), but no config.json; give that file and arch=")


def _adapter(path: Path, said: Said) -> Member:
    from fedfuse.fusing.adapters.member import AdapterMember  # which builds on members itself

    return AdapterMember(path, said)


def _in_safetensors(path: Path, said: Said) -> Member:
    if said.arch is None and is_of_fedfuse(path):
        return SavedMember(path, said)
    if said.arch is None and (path.parent / CONFIG).is_file():
        return HuggingFaceMember(Folder.open(path.parent), said)
    return StateDictMember(path, said)


def _in_archive(path: Path, said: Said) -> Member:
    if is_torchscript(path):
        return TorchScriptMember(path, said)
    names = [one.filename for one in entries(path)]
    if any(name.endswith("data.pkl") for name in names):
        return StateDictMember(path, said)
    if any(name.endswith(("archive_format", "serialized_exported_program.json")) for name in names):
        raise DataError(f"{path} is a program of torch.export; save it as TorchScript or ONNX")
    if any(name in ("metadata.json", "config.json") for name in names):
        raise DataError(f"{path} is a model of Keras; export it to ONNX")
    raise DataError(f"{path} is an archive, but none that torch writes; unpack it")


def _name(what: Any, name: str | None) -> str:
    """As the caller calls it; or by its file without the ending, its folder, its class or its function."""
    if name is not None:
        return name
    if isinstance(what, nn.Module):
        return type(what).__name__
    if isinstance(what, str | Path):
        path = Path(what)
        return (path.name if path.is_dir() else path.stem) or path.resolve().name
    return str(getattr(what, "__name__", type(what).__name__))


def _told(head: bytes) -> str:
    """What a file is that no reader is for."""
    if head[4:8] == b"TFL3":
        return "a TFLite model; export it to ONNX"
    if not head:
        return "empty; fetch it again"
    known = next((told for mark, told in MARKS.items() if head.startswith(mark)), None)
    return known or f"no model that can be read here (it begins with {shortened(str(head[:8]), 60)!a})"
