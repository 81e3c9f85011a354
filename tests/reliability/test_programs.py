"""The programs themselves: they find what they look for, and what they try is all of it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fedfuse.methods import METHODS
from tests.reliability.crashes.__main__ import main as crashes
from tests.reliability.crashes.__main__ import plan as strikes
from tests.reliability.crashes.mortal_files import HOWS, MortalFiles
from tests.reliability.evidence import difference
from tests.reliability.fusions.__main__ import main as fusions
from tests.reliability.kept import ROOT
from tests.reliability.kills import plan as kills
from tests.reliability.kills.__main__ import main as kill
from tests.reliability.soak.__main__ import main as soak
from tests.reliability.soak.meter import Mark
from tests.reliability.soak.rules import RULES, growth

ENGINES = ("local", "workers", "joined", "ray", "flower")


class TestSoak:
    early = Mark(500, megabytes=300, handles=40, threads=9, files=8, milliseconds=20, work=18, kilobytes=5)

    def test_what_stays_as_it_is_is_flat(self):
        assert not list(
            growth([replace(self.early, round=100, megabytes=1), self.early, replace(self.early, round=2000)])
        )

    @pytest.mark.parametrize("name", list(RULES))
    def test_whatever_grows_is_named(self, name):
        late = replace(self.early, round=2000, **{name: 1.5 * getattr(self.early, name)})
        (sentence,) = growth([self.early, self.early, late])
        assert sentence.startswith(f"{name} grew from")


class TestKills:
    trials = tuple(kills.plan(number, 0, ENGINES) for number in range(100))

    def test_every_method_every_engine_and_every_way(self):
        assert {trial.method for trial in self.trials} == set(METHODS)
        assert {engine for trial in self.trials for engine in trial.engines} == set(ENGINES)
        assert {kill.how for trial in self.trials for kill in trial.kills} == set(kills.HOWS)
        assert {trial.stack for trial in self.trials} == {"auto", False}
        assert sum(trial.clients == kills.MANY for trial in self.trials) == 5

    def test_a_number_has_its_trial_and_another_seed_others(self):
        assert kills.plan(7, 0, ENGINES) == self.trials[7]
        assert [kills.plan(number, 1, ENGINES) for number in range(100)] != list(self.trials)

    def test_without_ray_and_flower_there_are_as_many(self):
        engines = {engine for number in range(100) for engine in kills.plan(number, 0, ENGINES[:3]).engines}
        assert engines == set(ENGINES[:3])


class TestCrashes:
    def test_every_operation_in_every_way(self):
        assert len({strike[0] for strike in strikes(9, 0, None)}) == 9 * len(HOWS)
        assert len({strike[0] for strike in strikes(9, 0, 5)}) == 5

    def write(self, folder: Path, *strike: object) -> MortalFiles:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "kill", lambda _pid, number: (_ for _ in ()).throw(KeyboardInterrupt(number)))
            files = MortalFiles(folder, *strike, put=patch.setattr)
            with (folder / "file").open("wb") as file:
                file.write(b"12345678")
            (folder / "file").rename(folder / "other")  # nothing that is counted
            (folder / "other").replace(folder / "file")
        return files

    def test_operations_are_counted_in_the_folder_alone(self, tmp_path):
        (tmp_path / "run").mkdir()
        assert self.write(tmp_path / "run").count == 3
        with pytest.MonkeyPatch.context() as patch:
            files = MortalFiles(tmp_path / "run", put=patch.setattr)
            (tmp_path / "elsewhere").write_text("1")
        assert files.count == 0

    @pytest.mark.parametrize(
        ("strike", "left", "end"),
        [
            ((1, "before"), None, signal.SIGKILL),
            ((1, "after"), b"", signal.SIGKILL),
            ((2, "half"), b"1234", signal.SIGKILL),
            ((2, "after"), b"12345678", signal.SIGKILL),
            ((1, "error"), None, errno.EIO),
            ((1, "gone"), None, errno.EIO),
        ],
    )
    def test_what_is_left(self, tmp_path, strike, left, end):
        with pytest.raises((KeyboardInterrupt, OSError)) as caught:
            self.write(tmp_path, *strike)
        assert caught.value.args[0] == end
        path = tmp_path / "file"
        assert (path.read_bytes()[: len(left)] if path.exists() else None) == left


def test_a_difference_has_a_name():
    assert difference({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"}) == "b, c"
    assert difference({"a": "1"}, {"a": "1"}) == ""


@pytest.mark.parametrize(
    ("main", "options", "sentence"),
    [
        (crashes, ("fedavgg",), "there is no method 'fedavgg'; there are fedavg, "),
        (crashes, ("fedavg", "fedavg"), "method 'fedavg' is named twice"),
        (crashes, ("--points", "0"), "argument --points: at least 1, not '0'"),
        (crashes, ("--points", "many"), "argument --points: at least 1, not 'many'"),
        (crashes, ("--all", "--points", "3"), "argument --points: not allowed with argument --all"),
        (fusions, ("distill",), "there is no case 'distill'; there are distil, "),
        (fusions, ("--trials", "0"), "argument --trials: at least 1, not '0'"),
        (kill, ("--trials", "-1"), "argument --trials: at least 1, not '-1'"),
        (kill, ("--engines", "local,cloud"), "there is no engine 'cloud'; there are local, "),
        (soak, ("fedavgg",), "there is no case 'fedavgg'; there are fedavg, "),
        (soak, ("feddf", "feddf"), "case 'feddf' is named twice"),
        (soak, ("--alone",), "--alone is for one case"),
    ],
)
def test_nonsense_is_refused_with_a_sentence_before_anything_runs(main, options, sentence, capsys):
    with pytest.raises(SystemExit) as end:
        main(options)
    assert end.value.code == 2
    assert f"error: {sentence}" in capsys.readouterr().err.splitlines()[-1]


def program(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"tests.reliability.{name}", *options, "--fresh"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


@pytest.mark.long
def test_fusions_that_are_killed_end_with_the_same_bytes():
    """By SIGKILL, while models answer, in the lesson and while the result is written; the other cases take longer."""
    done = program("fusions", "distil", "--trials", "3", "--seed", "5")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("crashes", ("fedavg", "scaffold", "--points", "1", "--seed", "123")),
        ("fusions", ("--trials", "2", "--seed", "123")),
        ("kills", ("--trials", "3", "--engines", "local,workers,joined", "--seed", "123")),
    ],
)
def test_a_short_version_finds_nothing(name, options):
    done = program(name, *options)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_a_short_soak_measures_at_four_marks():
    done = program("soak", "fedavg", "--quick")
    assert [line.split()[1] for line in done.stdout.splitlines() if line.startswith("fedavg ")] == [
        "20",
        "50",
        "100",
        "200",
    ]
