"""A process that dies at any of its file operations leaves a folder from which a run goes on to the same bytes."""

from __future__ import annotations

import pytest

from fedfuse.experiment.run import Experiment
from tests.experiment.test_resume import assert_same
from tests.helpers import tiny_config
from tests.reliability.crashes.mortal_files import DISK_ERROR, MortalFiles

pytestmark = pytest.mark.usefixtures("without_pictures")
SOME = 6
"""How many of the operations are tried in the short tests."""


class Killed(BaseException):
    """The process is dead: it does not even clean up."""


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


@pytest.mark.parametrize("how", ["error", "half error", "gone"])
def test_the_disk_fails(tmp_path, how):
    """Once, after half of what is written, or from some operation on."""
    setting = experiment("scaffold", 1)
    expected = setting.run(tmp_path / "straight")
    for moment in (3, 17, 28, 41):
        out = tmp_path / str(moment)
        assert strikes(setting, out, moment, how) == "OSError"
        assert_same(setting.run(out, resume=True), expected)
        assert not list(out.rglob("*.tmp"))


def die_and_resume(tmp_path, method, every, some):
    setting = experiment(method, every)
    with pytest.MonkeyPatch.context() as patch:
        files = MortalFiles(tmp_path / "straight", put=patch.setattr)
        expected = setting.run(tmp_path / "straight")
    moments = range(1, files.count + 1)
    assert len(moments) > 60
    for moment in moments if some is None else moments[2 :: len(moments) // some]:
        out = tmp_path / str(moment)
        assert strikes(setting, out, moment, "gone", Killed()) == "Killed"
        strikes(setting, out, 20, "gone", Killed())  # and once more while it goes on, unless little is left to do
        assert_same(setting.run(out, resume=True), expected)
        assert not list(out.rglob("*.tmp"))


def strikes(setting, out, moment, how, error=DISK_ERROR):
    """Run, with a mishap at this operation; the name of what ended the run."""
    with pytest.MonkeyPatch.context() as patch:
        MortalFiles(out, moment, how, error, patch.setattr)
        try:
            setting.run(out, resume=True)
        except (Killed, OSError) as ended:
            return type(ended).__name__
    return ""
