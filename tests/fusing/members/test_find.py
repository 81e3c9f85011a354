"""Whatever somebody gives: recognised by a look, and told in one sentence where there is no reader for it."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from fedfuse.core.errors import DataError, FedfuseError
from fedfuse.fusing.members import open_member

JUNK: dict[str, tuple[bytes, str]] = {
    "empty.pt": (b"", "empty; fetch it again"),
    "model.gguf": (b"GGUF\x03\0\0\0", "a GGUF file of llama.cpp"),
    "model.h5": (b"\x89HDF\r\n\x1a\n", "an HDF5 file of Keras; export the model to ONNX"),
    "model.tflite": (b"\x1c\0\0\0TFL3", "a TFLite model"),
    "model.tar.gz": (b"\x1f\x8b\x08\0", "a gzip archive; unpack it"),
    "model.safetensors": (b"version https://git-lfs.github.com/spec/v1\n", "the note that Git LFS leaves"),
    "notes.txt": (b"just some text\n", "no model that can be read here"),
    "header.safetensors": ((1 << 60).to_bytes(8, "little") + b"{}", "no whole safetensors file"),
    "array.npy": (b"\x93NUMPY\x01\0", "a NumPy array"),
}


@pytest.mark.parametrize("name", JUNK)
def test_files_that_are_no_models(name: str, tmp_path: Path) -> None:
    content, sentence = JUNK[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=sentence) as told:
        open_member(tmp_path / name)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("inside", "sentence"),
    [
        ("archive_format", "a program of torch.export"),
        ("metadata.json", "a model of Keras"),
        ("readme.txt", "an archive, but none that torch writes"),
    ],
)
def test_archives_that_are_no_models(inside: str, sentence: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr(inside, "{}")
    with pytest.raises(DataError, match=sentence):
        open_member(tmp_path / "model.pt")


@pytest.mark.parametrize(
    ("inside", "sentence"),
    [
        ("adapter_config.json", "adapters of type 'None' are not known here"),
        ("model_index.json", "a pipeline of diffusers"),
        ("modules.json", "a sentence encoder, which is no classifier"),
        ("saved_model.pb", "a model of TensorFlow"),
        ("picture.png", "holds no model"),
    ],
)
def test_folders_that_are_no_models(inside: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / inside).write_text("{}")
    with pytest.raises(DataError, match=sentence):
        open_member(tmp_path)


def test_what_is_not_there_or_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist; models are files or folders here, and none is downloaded"):
        open_member("google/vit-base-patch16-224")
    os.mkfifo(tmp_path / "pipe.safetensors")
    (tmp_path / "loop.pt").symlink_to(tmp_path / "nowhere")
    for name in ("pipe.safetensors", "loop.pt"):
        with pytest.raises(DataError, match="is no regular file"):
            open_member(tmp_path / name)
    (tmp_path / "config.json").mkdir()
    with pytest.raises(FedfuseError):
        open_member(tmp_path)


def test_a_header_that_begins_like_an_archive_is_a_header(saved: Path, tmp_path: Path) -> None:
    """The length of a header may be the two letters with which archives begin."""
    content = saved.read_bytes()
    length = int.from_bytes(content[:8], "little")
    wanted = int.from_bytes(b"PK", "little")
    longer = wanted.to_bytes(8, "little") + content[8 : 8 + length] + b" " * (wanted - length) + content[8 + length :]
    (tmp_path / "net.safetensors").write_bytes(longer)
    assert open_member(tmp_path / "net.safetensors").about.format == "fedfuse"
