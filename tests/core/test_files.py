"""A file is either the old one or the whole new one."""

from __future__ import annotations

import pytest

from fedfuse.core.files import write_atomically, write_bytes, write_text


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
