"""Who may write into a run folder."""

from __future__ import annotations

import pytest

from fedfuse.core.errors import RunFolderError
from fedfuse.federation.folder import RunFolder


def opened(path):
    with RunFolder(path).opened():
        pass


def test_a_lock_keeps_others_out_and_is_given_back(tmp_path):
    with RunFolder(tmp_path / "run").opened():
        (tmp_path / "run" / "config.yaml").touch()
        with pytest.raises(RunFolderError, match="in use by another run"):
            opened(tmp_path / "run")
    opened(tmp_path / "run")


def test_who_is_kept_out_does_not_tear_down_what_another_is_about_to_fill(tmp_path):
    """The first one is still reading its data and has written nothing but its lock."""
    path = tmp_path / "run"
    with RunFolder(path).opened():
        with pytest.raises(RunFolderError, match="in use by another run"):
            opened(path)
        assert (path / ".lock").exists()
        with pytest.raises(RunFolderError, match="in use by another run"):
            opened(path)


def test_a_file_or_a_folder_of_strangers_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunFolderError, match="is a file"):
        opened(tmp_path / "file")
    with pytest.raises(RunFolderError, match=r"holds other files \('file'\) and no run"):
        opened(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_is_made_and_one_that_stays_empty_is_not_left_behind(tmp_path):
    path = tmp_path / "a" / "b"
    with RunFolder(path).opened():
        assert path.is_dir()
    assert not path.exists()


def test_clearing_removes_a_run_and_nothing_else(tmp_path):
    folder = RunFolder(tmp_path)
    arrays = tmp_path / "partition.safetensors"
    for path in (folder.config, folder.partition, arrays, folder.events, folder.summary):
        path.write_text("x")
    for sub in (folder.checkpoints, folder.final, folder.pictures):
        sub.mkdir()
        (sub / "x").write_text("x")
    (tmp_path / "notes.txt").write_text("mine")
    folder.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_folder_whose_clearing_was_cut_off_can_still_be_used(tmp_path, monkeypatch):
    """--overwrite, killed half way, then --overwrite again."""
    folder = RunFolder(tmp_path)
    folder.config.write_text("x")
    folder.checkpoints.mkdir()

    def killed(*_args, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("fedfuse.federation.folder.shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            folder.clear()
    opened(tmp_path)
