from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from fedfuse.core.files import cache_folder
from fedfuse.data import cache
from fedfuse.data.cache import cached
from fedfuse.data.readers import Contents, Reading
from fedfuse.data.tokens import TextSettings, tokenizer_of

from .samples import random_images


class Reader:
    """Counts how often it had to read."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Contents:
        self.calls += 1
        return Contents(random_images(4), np.arange(4), ("a", "b", "c", "d"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.bin"
    path.write_bytes(b"source")
    return path


def test_the_second_reading_comes_from_the_cache_and_is_the_same(source: Path) -> None:
    reader = Reader()
    first, second = (cached([source], Reading(), reader) for _ in range(2))
    assert reader.calls == 1
    np.testing.assert_array_equal(first.inputs, second.inputs)
    np.testing.assert_array_equal(first.labels, second.labels)
    assert second.class_names == first.class_names
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.from_numpy(second.inputs)


def test_what_was_decoded_is_for_its_owner_alone(source: Path) -> None:
    """Also where an earlier version left it open."""
    reader = Reader()
    for _ in range(2):
        cached([source], Reading(), reader)
        (folder,) = cache_folder().iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        folder.chmod(0o755)
    assert reader.calls == 1


def test_a_changed_file_or_option_is_read_again(source: Path) -> None:
    reader = Reader()
    cached([source], Reading(), reader)
    cached([source], Reading(resize=3), reader)
    assert reader.calls == 2
    source.write_bytes(b"changed")
    cached([source], Reading(), reader)
    assert reader.calls == 3


def test_texts_are_recognised_by_content_and_tokenizer(tmp_path: Path) -> None:
    reader, words = Reader(), Reading(tokenizer=tokenizer_of(TextSettings()))
    first, moved = tmp_path / "texts.csv", tmp_path / "moved.csv"
    first.write_text("a,b")
    moved.write_text("a,b")
    cached([first], words, reader)
    cached([moved], words, reader)
    assert reader.calls == 1
    cached([moved], Reading(tokenizer=tokenizer_of(TextSettings(max_length=9))), reader)
    assert reader.calls == 2
    state = first.stat()
    first.write_text("a,c")
    os.utime(first, ns=(state.st_atime_ns, state.st_mtime_ns))  # same size, same time, other content
    cached([first], words, reader)
    assert reader.calls == 3


@pytest.mark.parametrize("how", ["in place", "by another file"])
def test_an_image_of_the_same_size_and_time_is_read_again(source: Path, how: str) -> None:
    """As ``cp -p`` and ``rsync`` leave it."""
    reader, state = Reader(), source.stat()
    cached([source], Reading(), reader)
    copy = source if how == "in place" else source.with_name("copy.bin")
    copy.write_bytes(b"ecruos")
    os.utime(copy, ns=(state.st_atime_ns, state.st_mtime_ns))
    copy.replace(source)
    assert (source.stat().st_size, source.stat().st_mtime_ns) == (state.st_size, state.st_mtime_ns)
    cached([source], Reading(), reader)
    assert reader.calls == 2


def test_a_class_name_that_was_damaged_is_noticed(source: Path, own_cache: Path) -> None:
    reader = Reader()
    cached([source], Reading(), reader)
    (path,) = own_cache.rglob("contents.json")
    path.write_text(path.read_text().replace('"a"', '"x"'))
    assert cached([source], Reading(), reader).class_names == ("a", "b", "c", "d")
    assert reader.calls == 2


@pytest.mark.parametrize("name", ["inputs.npy", "labels.npy", "contents.json"])
@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "remove"])
def test_damage_is_noticed_and_repaired(source: Path, own_cache: Path, name: str, damage: str) -> None:
    reader = Reader()
    cached([source], Reading(), reader)
    (path,) = own_cache.rglob(name)
    data = bytearray(path.read_bytes())
    data[-3] ^= 0xFF
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes({"cut": bytes(data[:-20]), "flip": bytes(data), "empty": b""}[damage])
    for _ in range(2):
        np.testing.assert_array_equal(cached([source], Reading(), reader).inputs, random_images(4))
    assert reader.calls == 2


def test_a_disk_that_cannot_be_written_is_no_error(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDFUSE_CACHE", str(source / "below-a-file"))
    reader = Reader()
    for _ in range(2):
        assert len(cached([source], Reading(), reader).labels) == 4
    assert reader.calls == 2


def test_a_full_disk_leaves_nothing_half_written(
    source: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.np, "save", full)
    assert len(cached([source], Reading(), Reader()).labels) == 4
    assert not [path for path in own_cache.rglob("*") if path.is_file()]


def test_where_the_cache_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FEDFUSE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "fedfuse"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "fedfuse"
