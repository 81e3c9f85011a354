from __future__ import annotations

import json
import subprocess

import pytest
import torch

from fedfuse import Experiment, __version__
from fedfuse.core.origin import commit, machine, origin
from tests.helpers import tiny_config


@pytest.fixture
def checkout(tmp_path):
    package = tmp_path / "src" / "fedfuse"
    package.mkdir(parents=True)
    (package / "code.py").write_text("one")

    def git(*words):
        identity = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
        done = subprocess.run(["git", "-C", tmp_path, *identity, *words], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    return package, git("rev-parse", "HEAD")


def test_the_commit_of_a_checkout(checkout):
    package, head = checkout
    assert commit(package) == head
    (package / "other.txt").write_text("not tracked")
    assert commit(package) == head
    (package / "code.py").write_text("two")
    assert commit(package) == f"{head}+"


def test_an_installed_package_has_no_commit(tmp_path):
    package = tmp_path / "lib" / "fedfuse"
    package.mkdir(parents=True)
    assert commit(package) is None


def test_a_broken_checkout_has_no_commit(checkout):
    package, _ = checkout
    (package.parent.parent / ".git" / "HEAD").unlink()
    assert commit(package) is None


def test_it_stands_in_the_log_of_a_run(tmp_path, without_pictures):  # noqa: ARG001
    folder = Experiment(tiny_config()).run(tmp_path / "run").folder
    first = json.loads(folder.events.read_text(encoding="utf-8").splitlines()[0])
    assert first["origin"] == origin().to_json()
    assert (first["origin"]["fedfuse"], first["origin"]["machine"]) == (__version__, machine())
    assert torch.__version__.startswith(first["origin"]["torch"].partition("+")[0])
