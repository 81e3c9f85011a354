"""A sweep as a whole: killed anywhere it goes on with the same trials, and its runs are runs like any other."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

import fedfuse
from fedfuse.core.errors import FedfuseError, RunFolderError
from fedfuse.experiment.run import Experiment
from fedfuse.experiment.sweep import Sweep
from tests.helpers import Recorder, files_of, tiny_config
from tests.reliability.forked import Forked

pytestmark = pytest.mark.usefixtures("without_pictures")

SAMPLER = "random" if importlib.util.find_spec("optuna") is None else "tpe"
RATE = "training.optimizer.learning_rate=0.0001..1:log"
OVER = (RATE, "method.merge.kind=mean,momentum", "method.merge.beta=0.1..0.9")


def experiment(**sections: Any) -> Experiment:
    """Judged by the loss, which no two settings have in common."""
    federation, evaluation = {"rounds": 5, "participation": 0.75}, {"best_by": "loss"}
    return Experiment(tiny_config(**{"federation": federation, "evaluation": evaluation, **sections}))


def sweep(folder: Path, budget: int | None = 9, **options: Any) -> Sweep:
    settings = {"sampler": SAMPLER, "sampler_seed": 5 if budget else 0, "prune": True, **options}
    return fedfuse.sweep(experiment(), settings.pop("over", OVER), budget=budget, out=folder, **settings)


def told(found: Sweep) -> list[Any]:
    """All that matters of it."""
    return [(trial.number, dict(trial.values), trial.outcome) for trial in found.trials]


def interrupt(kind: str, count: int) -> Any:
    left = [count]

    def listener(event: Any) -> None:
        left[0] -= event["event"] == kind
        if left[0] == 0:
            left[0] = -1
            raise KeyboardInterrupt

    return listener


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    return sweep(tmp_path_factory.mktemp("whole") / "sweep")


def test_some_were_stopped_and_the_best_is_the_best_of_the_others(whole: Sweep) -> None:
    states = [trial.outcome.state for trial in whole.trials]
    assert len(states) == 9
    assert set(states) == {"finished", "pruned"}
    assert whole.best is not None
    assert whole.best.value == min(trial.value for trial in whole.trials if trial.value is not None)
    for trial in whole.trials:
        if trial.outcome.state == "finished":
            run = fedfuse.load_run(trial.folders[0])
            assert trial.value == run.history[-1].prototypes["mlp"].validation["loss"]


@pytest.mark.parametrize(
    ("kind", "count"), [("trial_ended", 1), ("round_finished", 3), ("round_finished", 27), ("trial_ended", 8)]
)
def test_interrupted_anywhere_it_goes_on_with_the_same_trials(
    tmp_path: Path, whole: Sweep, kind: str, count: int
) -> None:
    with pytest.raises(KeyboardInterrupt):
        sweep(tmp_path / "sweep", progress=interrupt(kind, count))
    again = sweep(tmp_path / "sweep")
    assert told(again) == told(whole)
    finals = {name: content for name, content in files_of(whole.folder).items() if "/final/" in name}
    assert {name: content for name, content in files_of(again.folder).items() if "/final/" in name} == finals
    assert again.best_file.read_text() == whole.best_file.read_text()


def test_killed_it_goes_on(tmp_path: Path, whole: Sweep) -> None:
    process = Forked(partial(sweep, tmp_path / "sweep"), tmp_path / "said")
    trials = tmp_path / "sweep" / "trials.jsonl"
    process.wait(lambda: trials.exists() and trials.read_text().count("trial_ended") >= 3)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with trials.open("a") as log:
        log.write('{"event": "trial_sugg')  # half a line, as a failing disk leaves it
    assert told(sweep(tmp_path / "sweep")) == told(whole)


def test_a_larger_budget_adds_to_what_is_there(tmp_path: Path, whole: Sweep) -> None:
    sweep(tmp_path / "sweep", budget=4)
    heard = Recorder()
    assert told(sweep(tmp_path / "sweep", progress=heard)) == told(whole)
    assert [event["trial"] for event in heard.of("trial_ended")] == [4, 5, 6, 7, 8]
    assert told(sweep(tmp_path / "sweep", budget=2)) == told(whole), "what was tried stays"


@pytest.mark.long
def test_side_by_side_it_comes_to_the_same_as_one_by_one(tmp_path: Path) -> None:
    """The trials that run together know nothing of each other, however many really do."""
    small = {"over": OVER[:1], "budget": 6, "prune": True}
    together = sweep(tmp_path / "together", jobs=2, **small)
    window = yaml.safe_load((tmp_path / "together" / "sweep.yaml").read_text())["window"]
    assert window == 4
    with pytest.raises(KeyboardInterrupt):
        sweep(tmp_path / "one", jobs=2, progress=interrupt("study_run_started", 2), **small)
    assert told(sweep(tmp_path / "one", **small)) == told(together)


def test_a_stopped_run_is_an_unfinished_run_that_resume_finishes(tmp_path: Path, whole: Sweep) -> None:
    import shutil

    stopped = next(trial for trial in whole.trials if trial.outcome.state == "pruned")
    folder = tmp_path / "run"
    shutil.copytree(stopped.folders[0], folder)
    run = fedfuse.load_run(folder)
    assert not run.is_finished
    assert run.summary["rounds"] == stopped.outcome.rounds < 5
    finished = Experiment.load(folder).run(folder, resume=True)
    straight = Experiment.load(folder).run(tmp_path / "straight")
    assert files_of(finished.folder.final) == files_of(straight.folder.final)


def test_the_best_setting_is_a_file_that_comes_to_the_same(tmp_path: Path, whole: Sweep) -> None:
    assert whole.best is not None
    text = whole.best_file.read_text()
    assert text.startswith(f"# Trial {whole.best.number} of a sweep of 9: loss ")
    run = fedfuse.run(whole.best_file, out=tmp_path / "run")
    assert files_of(run.folder.final) == files_of(whole.best.folders[0] / "final")
    assert run.summary["name"] == "experiment-best"


def test_without_a_budget_every_combination_is_tried_and_no_optuna_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    over = {"training.batch_size": [4, 16], "training.epochs": fedfuse.Range(1, 2)}
    found = sweep(tmp_path / "sweep", budget=None, over=over, sampler=None, prune=False, seeds=[0, 1])
    assert [tuple(trial.values.values()) for trial in found.trials] == [(4, 1), (4, 2), (16, 1), (16, 2)]
    for trial in found.trials:
        runs = [fedfuse.load_run(folder) for folder in trial.folders]
        assert [run.summary["seed"] for run in runs] == [0, 1]
        values = [run.history[-1].prototypes["mlp"].validation["loss"] for run in runs]
        assert trial.value == pytest.approx(sum(values) / 2)
        assert trial.outcome.values == tuple(values)
    assert found.importance == {}
    comparison = fedfuse.compare(tmp_path / "sweep")
    assert len(comparison.rows) == 4, "the same runs in the tables of comparisons"
    assert {row.seeds for row in comparison.rows} == {(0, 1)}


def test_a_trial_that_cannot_be_is_its_own_affair(tmp_path: Path) -> None:
    over = {"method.local.kind": ["voting_distillation", "plain", "proximal"]}
    data = {"name": "blobs", "examples": 150, "validation": 0, "public": 0.2}
    found = fedfuse.sweep(experiment(data=data), over, out=tmp_path / "sweep")
    assert [trial.outcome.state for trial in found.trials] == ["failed", "finished", "finished"]
    assert "set data.validation" in found.trials[0].outcome.reason
    assert found.best is not None
    assert "too good" in str(found.facts()["caution"])
    assert "failed" in str(found)


def test_if_all_fail_the_sweep_ends(tmp_path: Path) -> None:
    data = {"name": "blobs", "examples": 150, "validation": 0, "public": 0.2}
    method = {"name": "fedavg", "local": {"kind": "voting_distillation"}}
    with pytest.raises(FedfuseError, match=r"the first 5 trials failed; the last one: .*set data.validation"):
        fedfuse.sweep(experiment(data=data, method=method), {"training.epochs": "1..9"}, out=tmp_path / "sweep")


def test_what_did_not_change_is_not_tried_twice(tmp_path: Path) -> None:
    found = sweep(tmp_path / "sweep", over={"training.batch_size": [4, 16]}, budget=6, sampler="random", prune=False)
    first = {}
    for trial in found.trials:
        same = first.setdefault(str(trial.values), trial)
        assert trial.outcome == same.outcome
        assert bool(trial.folders) == (trial is same)


def test_rounds_that_are_judged_by_their_best_count_so(tmp_path: Path) -> None:
    found = sweep(tmp_path / "s", budget=None, over={"training.batch_size": [4, 16]}, sampler=None, prune=False,
                  evaluation={"keep_best": True})  # fmt: skip
    for trial in found.trials:
        assert trial.value == fedfuse.load_run(trial.folders[0]).summary["best"]["value"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"over": OVER[:1]}, "over is "),
        ({"sampler_seed": 1}, "seed is 5 there and 1 here"),
        ({"seeds": [3]}, "seeds is [0] there and [3] here"),
        ({"prune": False}, "prune is True there and False here"),
        ({"training": {"epochs": 3}}, "its experiment, or what is changed in it, is not this one"),
    ],
)
def test_another_sweep_in_its_place_is_refused(whole: Sweep, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(RunFolderError, match=re.escape(sentence)):
        sweep(whole.folder, **options)


def test_other_files_in_its_place_are_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(RunFolderError, match=r"holds other files \('thesis.tex'\) and no sweep"):
        sweep(tmp_path)


@pytest.mark.parametrize(
    "line",
    ['{"event": "trial_ended", "trial": 99, "state": "finished", "curves": []}', '{"event": "trial_suggested"}',
     '{"event": "trial_suggested", "trial": 77, "values": {}}', '{"event": "trial_suggested", "trial": "0"}', "[]",
     '{"event": "trial_ended", "trial": 0, "state": "won", "curves": []}', '{"event": "trial_ended", "trial": -1}'],
)  # fmt: skip
def test_a_ledger_that_was_changed_is_said_to_be(tmp_path: Path, line: str) -> None:
    small = {"over": {"training.batch_size": [4]}, "budget": None, "sampler": None, "prune": False}
    sweep(tmp_path / "sweep", **small)
    with (tmp_path / "sweep" / "trials.jsonl").open("a") as log:
        log.write(f"{line}\n")
    with pytest.raises(RunFolderError, match=r"is not as the sweep left it|is damaged"):
        sweep(tmp_path / "sweep", **small)


def test_its_tables_are_for_people_programs_and_notebooks(whole: Sweep) -> None:
    text = str(whole)
    assert "learning_rate" in text
    assert "merge" in text
    assert max(map(len, text.splitlines()[:-4])) <= 80
    assert whole._repr_html_().count("<tr>") == 1 + 9
    record = json.loads((whole.folder / "sweep.json").read_text())
    assert [trial["trial"] for trial in record["trials"]] == list(range(9))
    assert len(whole.to_frame()) == 9
