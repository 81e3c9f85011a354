"""A process that dies at any of its file operations leaves a folder from which a run goes on to the same bytes."""

from __future__ import annotations

import os

import pytest

from fedfuse.experiment.run import Experiment
from tests.experiment.test_resume import assert_same
from tests.helpers import tiny_config

pytestmark = pytest.mark.usefixtures("without_pictures")
OPERATIONS = ("fsync", "replace", "unlink", "truncate", "open")
SOME = 6
"""How many of the operations are tried in the short tests."""


class Killed(BaseException):
    """The process is dead: it does not even clean up."""


class Mortal:
    """Counts the operations on files, and dies at one of them: from then on none is done any more."""

    def __init__(self, monkeypatch, dies_at=None):
        self.count, self.dies_at = 0, dies_at
        for name in OPERATIONS:
            monkeypatch.setattr(os, name, self.mortal(getattr(os, name)))

    def mortal(self, operation):
        def done(*arguments, **options):
            self.count += 1
            if self.dies_at is not None and self.count >= self.dies_at:
                raise Killed
            return operation(*arguments, **options)

        return done


def experiment(method, every):
    federation = {"rounds": 4, "participation": 0.75, "checkpoint_every": every}
    return Experiment(tiny_config(method, federation=federation))


CASES = [("scaffold", 1), ("scaffold", 2), ("local-only", 1)]


@pytest.mark.parametrize(("method", "every"), CASES)
def test_some_operations(tmp_path, method, every):
    die_and_resume(tmp_path, method, every, SOME)


@pytest.mark.long
@pytest.mark.parametrize(("method", "every"), CASES)
def test_all_operations(tmp_path, method, every):
    die_and_resume(tmp_path, method, every, None)


def die_and_resume(tmp_path, method, every, some):
    setting = experiment(method, every)
    with pytest.MonkeyPatch.context() as patch:
        mortal = Mortal(patch)
        expected = setting.run(tmp_path / "straight")
    moments = range(1, mortal.count + 1)
    assert len(moments) > 30
    for moment in moments if some is None else moments[2 :: len(moments) // some]:
        out = tmp_path / str(moment)
        assert is_killed(setting, out, moment)
        is_killed(setting, out, 20)  # and once more while it goes on, unless little is left to do
        assert_same(setting.run(out, resume=True), expected)
        assert not list(out.rglob("*.tmp"))


def is_killed(setting, out, moment):
    with pytest.MonkeyPatch.context() as patch:
        Mortal(patch, dies_at=moment)
        try:
            setting.run(out, resume=True)
        except Killed:
            return True
    return False
