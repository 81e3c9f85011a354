"""More rounds after the end: bit for bit the run that had them from the start, or a sentence that says why not."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import fedfuse
from fedfuse.core.errors import RunFolderError
from fedfuse.core.part import dependent_on_rounds
from fedfuse.experiment import longer
from fedfuse.experiment.comparison import Cell, complete, rehearse
from fedfuse.experiment.result import RunResult
from fedfuse.experiment.run import Experiment
from fedfuse.federation.folder import RunFolder
from fedfuse.methods import METHODS
from fedfuse.parts.local import Plain
from fedfuse.runtime.training import TrainingSettings
from tests.experiment.test_resume import StopAt, assert_same
from tests.helpers import Recorder, events_of, tiny_config

pytestmark = pytest.mark.usefixtures("without_pictures")

SHORT, LONG = 2, 4
TELLING = ("fedavg", "scaffold", "feddf", "fedma", "ds-fl", "fedgkd")
"""Methods with everything that may be kept from round to round; the others are as good, and take their time."""


def experiment(method: str = "fedavg", rounds: int = LONG, every: int = 1, **sections: Any) -> Experiment:
    federation = {"rounds": rounds, "participation": 0.75, **sections.pop("federation", {})}
    evaluation = {"every": every, **sections.pop("evaluation", {})}
    return Experiment(tiny_config(method, federation=federation, evaluation=evaluation, **sections))


def lengthened(folder: Path, method: str = "fedavg", **settings: Any) -> RunResult:
    experiment(method, SHORT, **settings).run(folder)
    return experiment(method, LONG, **settings).run(folder, resume=True)


@pytest.mark.parametrize(
    "method", [name if name in TELLING else pytest.param(name, marks=pytest.mark.long) for name in METHODS]
)
def test_every_method_goes_on_to_the_bits_of_a_longer_run(tmp_path: Path, method: str) -> None:
    assert_same(lengthened(tmp_path / "run", method), experiment(method).run(tmp_path / "straight"))


@pytest.mark.parametrize(("short", "every"), [(2, 2), (2, 3), (3, 2), (1, 2), (3, 4)])
def test_a_last_round_that_was_measured_as_such_is_played_again(tmp_path: Path, short: int, every: int) -> None:
    """With evaluation.every the last round is measured in any case, and a longer run would pass it over."""
    straight = experiment(rounds=5, every=every).run(tmp_path / "straight")
    experiment(rounds=short, every=every).run(tmp_path / "run")
    if short == 1:  # there is no checkpoint before round 1
        with pytest.raises(RunFolderError, match=r"would measure round 1 otherwise .* no checkpoint before it"):
            experiment(rounds=5, every=every).run(tmp_path / "run", resume=True)
        return
    assert_same(experiment(rounds=5, every=every).run(tmp_path / "run", resume=True), straight)


@pytest.mark.parametrize("wanted", [3, 5])
def test_an_unfinished_run_comes_to_another_end(tmp_path: Path, wanted: int) -> None:
    straight = experiment("scaffold", wanted, every=2).run(tmp_path / "straight")
    with pytest.raises(KeyboardInterrupt):
        experiment("scaffold", 4, every=2).run(tmp_path / "run", listeners=(StopAt("round_started", 4),))
    assert_same(experiment("scaffold", wanted, every=2).run(tmp_path / "run", resume=True), straight)


def test_again_and_again(tmp_path: Path) -> None:
    for rounds in (1, 2, 4, 5):
        found = experiment("fedavgm", rounds).run(tmp_path / "run", resume=True)
    assert_same(found, experiment("fedavgm", 5).run(tmp_path / "straight"))
    assert [(event["before"], event["now"]) for event in events_of(tmp_path / "run", "rounds_changed")] == [
        (1, 2), (2, 4), (4, 5),
    ]  # fmt: skip


def test_a_run_that_stopped_at_its_target_stays_over(tmp_path: Path) -> None:
    stop = {"evaluation": {"target_accuracy": 0.05, "stop_at_target": True}}
    found = lengthened(tmp_path / "run", **stop)
    assert found.summary["rounds"] == 1
    assert_same(found, experiment(**stop).run(tmp_path / "straight"))


@pytest.mark.parametrize("moment", ["unlink", "forget_after", "go_on_from", "save_checkpoint", "write_text"])
@pytest.mark.parametrize("then", [SHORT, LONG])
def test_killed_while_it_is_made_longer_it_goes_on_as_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, then: int
) -> None:
    """evaluation.every makes it fall back to an earlier checkpoint, which is the longest way."""
    experiment("scaffold", SHORT, every=3).run(tmp_path / "run")
    with monkeypatch.context() as patch:
        place: Any = Path if moment == "unlink" else longer
        patch.setattr(place, moment, _killed)
        with pytest.raises(KeyboardInterrupt):
            experiment("scaffold", LONG, every=3).run(tmp_path / "run", resume=True)
    straight = experiment("scaffold", then, every=3).run(tmp_path / "straight")
    assert_same(experiment("scaffold", then, every=3).run(tmp_path / "run", resume=True), straight)


def _killed(*_arguments: object, **_options: object) -> None:
    raise KeyboardInterrupt


def test_stopped_in_the_new_rounds_it_goes_on(tmp_path: Path) -> None:
    experiment("feddf", SHORT).run(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        experiment("feddf").run(tmp_path / "run", resume=True, listeners=(StopAt("client_finished", 2),))
    assert not fedfuse.load_run(tmp_path / "run").is_finished
    by_folder = Experiment.load(tmp_path / "run").run(tmp_path / "run", resume=True)
    assert_same(by_folder, experiment("feddf").run(tmp_path / "straight"))


def test_without_its_data_a_finished_run_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment(rounds=SHORT).run(tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    monkeypatch.setattr("fedfuse.experiment.run.build", _killed)
    with pytest.raises(KeyboardInterrupt):
        experiment().run(tmp_path / "run", resume=True)
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


DECAYING = {"training": {"epochs": 1, "batch_size": 8, "decay": [{"after": 0.5, "factor": 0.1}]}}


@pytest.mark.parametrize(
    ("begun", "wanted", "sentence"),
    [
        ({**DECAYING, "rounds": 2}, {**DECAYING, "rounds": 4}, "training depends on their number"),
        ({"rounds": 3}, {"rounds": 2}, "has finished 3 rounds, and 2 are wanted"),
        ({"rounds": 2}, {"rounds": 4, "seed": 1}, "seed is 0 there and 1 here"),
    ],
)
def test_what_cannot_go_on_is_refused_with_the_reason(
    tmp_path: Path, begun: dict[str, Any], wanted: dict[str, Any], sentence: str
) -> None:
    experiment(**begun).run(tmp_path / "run")
    before = sorted((tmp_path / "run").rglob("*"))
    with pytest.raises(RunFolderError, match=re.escape(sentence)) as refused:
        experiment(**wanted).run(tmp_path / "run", resume=True)
    assert str(refused.value).endswith("choose another out=, or replace it with overwrite=True")
    assert sorted((tmp_path / "run").rglob("*")) == before


def test_without_checkpoints_a_finished_run_cannot_go_on(tmp_path: Path) -> None:
    experiment(rounds=SHORT).run(tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    with pytest.raises(RunFolderError, match="whose checkpoints are gone"):
        experiment().run(tmp_path / "run", resume=True)
    assert fedfuse.load_run(tmp_path / "run").is_finished


def test_without_resume_nothing_is_made_longer(tmp_path: Path) -> None:
    experiment(rounds=SHORT).run(tmp_path / "run")
    with pytest.raises(RunFolderError, match="already holds a run"):
        experiment().run(tmp_path / "run")


def test_a_checkpoint_of_an_earlier_version_has_no_course_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("fedfuse.experiment.config.schema.Identity", lambda whole, _course: whole)
        experiment("scaffold", SHORT).run(tmp_path / "run")
    found = experiment("scaffold").run(tmp_path / "run", resume=True)
    assert_same(found, experiment("scaffold").run(tmp_path / "straight"))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_comparison_goes_on_to_more_rounds(tmp_path: Path, jobs: int) -> None:
    def study(rounds: int) -> list[Cell]:
        return [Cell(experiment(method, rounds), RunFolder(tmp_path / method)) for method in ("fedavg", "scaffold")]

    complete(rehearse(study(SHORT), overwrite=False))
    told = Recorder()
    complete(rehearse(study(LONG), overwrite=False), jobs, told)
    assert not told.of("study_run_found")
    for method in ("fedavg", "scaffold"):
        straight = experiment(method).run(tmp_path / f"straight-{method}")
        assert_same(fedfuse.load_run(tmp_path / method), straight)


class Scheduled(Plain):
    """A part from outside that knows how many rounds there shall be."""

    rounds: int = 9

    @property
    def depends_on_rounds(self) -> bool:
        return True


def test_whatever_depends_on_rounds_says_so_by_its_key() -> None:
    config = experiment(method="fedavg").config
    assert config.dependent_on_rounds() == []
    method = config.method.model_copy(update={"local": Scheduled()})
    assert config.model_copy(update={"method": method}).dependent_on_rounds() == ["method.local"]
    decaying = TrainingSettings.model_validate(DECAYING["training"])
    assert list(dependent_on_rounds({"training": decaying})) == ["training"]


def test_no_part_is_shown_how_many_rounds_there_are() -> None:
    """So that one which does not say that it depends on them does not."""
    from dataclasses import fields

    from fedfuse.core.messages import Task
    from fedfuse.parts.base import CheckContext
    from fedfuse.parts.context import ClientContext, ServerView
    from fedfuse.parts.sources import Surroundings

    for shown in (ServerView, ClientContext, CheckContext, Task, Surroundings):
        assert "rounds" not in {field.name for field in fields(shown)}
        assert "settings" not in {field.name for field in fields(shown)}
    assert "rounds" not in TrainingSettings.model_fields


def test_what_the_shorter_run_took_for_what_is_not_shown_of_the_longer_one(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    experiment(rounds=SHORT).run(run.path)
    before = run.confusion.read_text()
    experiment(rounds=LONG).prepare(run, resume=True)
    assert not run.confusion.exists()
    experiment(rounds=LONG).run(run.path, resume=True)
    experiment(rounds=LONG).run(tmp_path / "straight")
    assert run.confusion.read_text() == RunFolder(tmp_path / "straight").confusion.read_text() != before
