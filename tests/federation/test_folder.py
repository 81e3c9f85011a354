"""Who may write into a run folder."""

from __future__ import annotations

import stat
import time
from functools import partial
from pathlib import Path

import pytest

from fedfuse.core.errors import RunFolderError
from fedfuse.federation.folder import RunFolder
from tests.reliability.forked import Forked

OURS = [
    "checkpoints/round-000012.safetensors",
    "checkpoints/round-000013.safetensors.damaged",
    "checkpoints/clients/round-1000012.states",
    "final/a-model.safetensors",
    "final/clients/7.safetensors",
    "pictures/accuracy.png",
]
MINE = ["notes.txt", "checkpoints/round-best.safetensors", "final/why.md", "pictures/mine.svg", "final/clients/me.txt"]


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
    for name in (*OURS, *MINE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    folder.clear()
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == sorted(
        ["config.yaml", *MINE]
    )
    for name in MINE:
        (tmp_path / name).unlink()
    folder.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"], (
        "as long as it is there, the folder is a run's"
    )


def test_a_folder_whose_clearing_was_cut_off_can_still_be_used(tmp_path, monkeypatch):
    """--overwrite, killed half way, then --overwrite again."""
    folder = RunFolder(tmp_path)
    folder.config.write_text("x")
    folder.checkpoints.mkdir()

    def killed(*_args, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.rmdir", killed)
        with pytest.raises(KeyboardInterrupt):
            folder.clear()
    opened(tmp_path)


@pytest.mark.parametrize("name", ["summary.json", *OURS[:2], *OURS[3:5]])
def test_any_result_is_a_run(tmp_path, name):
    folder = RunFolder(tmp_path)
    for stranger in ("config.yaml", *MINE, "checkpoints/clients/round-000001.states"):
        (tmp_path / stranger).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / stranger).write_text("x")
    assert not folder.holds_a_run()
    (tmp_path / name).write_text("x")
    assert folder.holds_a_run()


def test_a_finished_round_in_the_log_is_a_run(tmp_path):
    folder = RunFolder(tmp_path)
    folder.events.write_text('{"event": "run_started"}\n{"event": "round_started", "round": 1}\n')
    assert not folder.holds_a_run()
    folder.events.write_text(folder.events.read_text() + '{"event": "round_finished", "round": 1}\n')
    assert folder.holds_a_run()


def test_only_half_written_files_are_swept(tmp_path):
    for name in (
        ".config.yaml.123.tmp",
        ".notes.tmp",
        ".a.tmp",
        "b.tmp",
        "checkpoints/.round-000001.safetensors.9.tmp",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    RunFolder(tmp_path).sweep()
    left = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert left == [".a.tmp", ".notes.tmp", "b.tmp"]


def test_the_lock_is_nobody_elses_to_read(tmp_path):
    with RunFolder(tmp_path / "run").opened():
        assert stat.S_IMODE((tmp_path / "run" / ".lock").stat().st_mode) == 0o600


def race(folder: RunFolder, inside: Path, seconds: float) -> None:
    """Print how often the folder was had, and how often somebody else had it as well."""
    held = together = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with folder.opened():
                held += 1
                try:
                    inside.mkdir()
                except FileExistsError:
                    together += 1
                else:
                    inside.rmdir()
        except RunFolderError:
            pass
    print(held, together)


def test_two_processes_never_have_the_lock_at_a_time(tmp_path):
    """Nothing comes to be in the folder, so that each holder removes it and its lock again."""
    work = partial(race, RunFolder(tmp_path / "a" / "run"), tmp_path / "inside", 0.8)
    racers = [Forked(work, tmp_path / f"log-{number}") for number in range(4)]
    for racer in racers:
        racer.wait()
    assert [racer.code() for racer in racers] == [0] * 4, racers[0].last_words()
    counts = [tuple(map(int, racer.log.read_text().split())) for racer in racers]
    assert sum(held for held, _ in counts) > 100
    assert sum(together for _, together in counts) == 0
