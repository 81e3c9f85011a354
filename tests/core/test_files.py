"""A file is either the old one or the whole new one."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from fedfuse.core.files import create, is_there, names_in, write_atomically, write_bytes, write_text


def test_the_new_content_is_there_and_nothing_else(tmp_path):
    path = tmp_path / "a" / "b.txt"
    write_text(path, "one")
    write_text(path, "zwei ü")
    assert path.read_text(encoding="utf-8") == "zwei ü"
    write_bytes(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failing_writer_leaves_the_old_file_and_no_other(tmp_path, error):
    path = tmp_path / "b.txt"
    write_text(path, "old")

    def half(temporary):
        temporary.write_text("ne")
        raise error

    with pytest.raises(error):
        write_atomically(path, half)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_while_it_is_written_the_old_file_is_still_whole(tmp_path):
    path = tmp_path / "b.txt"
    write_text(path, "old")

    def write(temporary):
        temporary.write_text("new")
        assert path.read_text() == "old"

    write_atomically(path, write)
    assert path.read_text() == "new"


def test_a_writer_that_writes_nothing_changes_nothing(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "b.txt", lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_a_link_that_somebody_laid_is_not_followed(tmp_path):
    """Who may write into the folder knows the name of the file that is about to be written."""
    (tmp_path / "victim").write_text("theirs")
    (tmp_path / f".b.txt.{os.getpid()}.tmp").symlink_to(tmp_path / "victim")
    write_text(tmp_path / "b.txt", "new")
    assert (tmp_path / "victim").read_text() == "theirs"
    assert (tmp_path / "b.txt").read_text() == "new"
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    with pytest.raises(FileExistsError):
        create(tmp_path / "link")


def test_what_a_killed_process_left_is_no_hindrance(tmp_path):
    """In a container every process has the same number."""
    (tmp_path / f".b.txt.{os.getpid()}.tmp").write_text("half")
    write_text(tmp_path / "b.txt", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["b.txt"]


def test_a_private_file_is_private_from_its_first_byte(tmp_path):
    with create(tmp_path / "x", private=True):
        assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o600


def test_only_what_is_not_there_is_not_there(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("x")
    (tmp_path / "dangling").symlink_to("nowhere")
    assert [is_there(tmp_path / name) for name in ("a", "b", "a/b", "dangling")] == [True, False, False, False]
    assert names_in(tmp_path / "b") == []
    assert names_in(tmp_path) == ["a", "dangling"]
    for number in (errno.EACCES, errno.EIO, errno.ESTALE):

        def fail(*_, number=number, **__):
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as patch:
            patch.setattr("pathlib.Path.stat", fail)
            with pytest.raises(OSError, match=os.strerror(number)):
                is_there(tmp_path / "a")
