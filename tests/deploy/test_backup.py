"""What docs/operation.md says about backups, done: a database in use, and the folder of a run that was stopped."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from fedfuse.experiment.run import Experiment
from fedfuse.federation.events import Event
from tests.helpers import files_of, tiny_config

PAGE = Path(__file__).parents[2] / "docs" / "operation.md"


def backup_command(database: Path, backup: Path) -> list[str]:
    """The page's own command."""
    (code,) = re.findall(
        r'^\$ python -c "(import sqlite3.*)" superlink\.db backup\.db$', PAGE.read_text(), re.MULTILINE
    )
    return [sys.executable, "-c", code, str(database), str(backup)]


def names(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM node ORDER BY name")]


@pytest.fixture
def database(tmp_path: Path):
    """One that somebody is at work with, as a SuperLink is: the latest rows are in its -wal only."""
    path = tmp_path / "superlink.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE node (name TEXT)")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("INSERT INTO node VALUES ('a'), ('b')")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO node VALUES ('not yet')")
        yield path


def test_a_database_in_use_is_copied_whole(database: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    subprocess.run(backup_command(database, backup), check=True, timeout=60)
    assert names(backup) == ["a", "b"]


def test_its_file_alone_is_not_a_backup(database: Path, tmp_path: Path) -> None:
    shutil.copy(database, tmp_path / "copy.db")
    assert names(tmp_path / "copy.db") == []


def test_a_backup_is_not_overwritten(database: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    subprocess.run(backup_command(database, backup), check=True, timeout=60)
    again = subprocess.run(backup_command(database, backup), capture_output=True, text=True, timeout=60)
    assert again.returncode != 0
    assert names(backup) == ["a", "b"]


@pytest.mark.usefixtures("without_pictures")
def test_a_copied_run_folder_goes_on_elsewhere_with_the_same_bits(tmp_path: Path) -> None:
    config = tiny_config("scaffold", federation={"rounds": 4, "checkpoint_every": 1})
    whole = Experiment(config).run(tmp_path / "whole")

    def stop(event: Event) -> None:
        if (event["event"], event.get("round")) == ("round_started", 3):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Experiment(config).run(tmp_path / "run", listeners=(stop,))
    shutil.copytree(tmp_path / "run", tmp_path / "elsewhere" / "backup")
    shutil.rmtree(tmp_path / "run")
    restored = Experiment(config).run(tmp_path / "elsewhere" / "backup", resume=True)
    assert [record.round for record in restored.history] == [1, 2, 3, 4]
    assert files_of(restored.folder.final) == files_of(whole.folder.final)
