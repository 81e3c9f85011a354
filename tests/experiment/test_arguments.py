"""What functions are called with: a wrong type is a sentence, and nothing that is said is passed over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedfuse
from fedfuse.core.errors import ConfigError, FedfuseError, RunFolderError
from tests.experiment.test_python_values import TINY

pytestmark = pytest.mark.usefixtures("without_pictures")
OVER = {"training.batch_size": [8, 16]}


@pytest.mark.parametrize("jobs", [0, -1, True, False, None, "2", 1.5])
def test_jobs_are_a_whole_number_from_one(jobs: Any, tmp_path: Path) -> None:
    calls = [
        lambda: fedfuse.compare(TINY, "fedavg", [0, 1], jobs=jobs, out=tmp_path),
        lambda: fedfuse.sweep(TINY, OVER, jobs=jobs, out=tmp_path),
        lambda: fedfuse.run_all({tmp_path: fedfuse.Experiment(TINY)}, jobs=jobs),
    ]
    for call in calls:
        with pytest.raises(ConfigError, match=r"^jobs=.*: give a whole number from 1$"):
            call()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"overwrite": "no"}, "overwrite='no': give True or False"),
        ({"resume": "yes"}, "resume='yes': give True or False"),
        ({"progress": "yes"}, "progress='yes': give True, False, 'auto' or one function"),
        ({"progress": [print]}, "progress=.*print.*: give True, False, 'auto' or one function"),
        ({"assignments": {"seed": 4}}, r"assignments=.*: give a list of texts, such as \['federation.rounds=20'\]"),
        ({"assignments": [4]}, "assignments=.*: give a list of texts"),
        ({"out": 3}, "out=3: give a path, or leave it out"),
        ({"out": ""}, "out='': give a path, or leave it out"),
        ({"overwite": True}, r"run has no argument 'overwite' \(did you mean 'overwrite'\?\)"),
        ({"jobs": 2}, "run has no argument 'jobs'; fedfuse.compare has"),
        ({"seeds": [0, 1]}, r"run has no argument 'seeds' \(did you mean 'seed'\?\)"),
    ],
)
def test_run_refuses_what_it_cannot_mean(arguments: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=sentence):
        fedfuse.run(TINY, **{"out": tmp_path / "run", **arguments})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"seeds": "0,1"}, r"seeds='0,1': give whole numbers, such as \[0, 1, 2\]"),
        ({"seeds": [True]}, r"seeds=True: give a whole number from 0"),
        ({"seeds": [0, 0]}, r"seeds=\[0, 0\]: give each seed once"),
        ({"seeds": -1}, "seeds=-1: give a whole number from 0"),
        ({"seeds": [0, 1], "seed": 2}, "seed= and seeds= both say which seed is run"),
        ({"methods": ["feddf"], "method": "fedavg"}, "method= and methods= both say which method is run"),
        ({"methods": 3}, "methods=3: give one of them, or a list"),
        ({"over": ["training.batch_size", 3]}, "over=.*: give a list of texts"),
        ({"overwrite": 1}, "overwrite=1: give True or False"),
    ],
)
def test_compare_refuses_what_it_cannot_mean(arguments: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=sentence):
        fedfuse.compare(TINY, **{"out": tmp_path / "study", **arguments})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"budget": "3"}, "budget='3': give a whole number from 1"),
        ({"budget": True}, "budget=True: give a whole number from 1"),
        ({"budget": 2, "sampler_seed": "a"}, "sampler_seed='a': give a whole number from 0"),
        ({"sampler_seed": 4}, "sampler_seed=4 changes nothing: a grid has every combination"),
        ({"prune": "no"}, "prune='no': give True or False"),
        ({"seeds": [0, 1], "seed": 2}, "seed= and seeds= both say which seed is run"),
        ({"overwrite": True}, "unknown key 'overwrite'"),
    ],
)
def test_sweep_refuses_what_it_cannot_mean(arguments: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=sentence):
        fedfuse.sweep(TINY, OVER, **{"out": tmp_path / "sweep", **arguments})
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_compare_and_what_is_no_experiment_are_sentences() -> None:
    with pytest.raises(ConfigError, match="there is nothing to compare"):
        fedfuse.compare([])
    for given in ({"runs/a": "digits"}, [fedfuse.Experiment(TINY)]):
        with pytest.raises(ConfigError, match="run_all takes experiments by their folders"):
            fedfuse.run_all(given)  # type: ignore[arg-type]


def test_single_texts_and_numbers_of_numpy_need_no_list(tmp_path: Path) -> None:
    assert fedfuse.run(TINY, assignments="seed=4", out=tmp_path / "run").summary["seed"] == 4
    found = fedfuse.compare(TINY, None, np.arange(2), over="training.batch_size=8,16", out=tmp_path / "study")
    assert sorted(run.path.name[-5:] for run in map(_folder, (tmp_path / "study").glob("*-seed*"))) == [
        "seed0",
        "seed0",
        "seed1",
        "seed1",
    ]
    assert len(found.rows) == 2


def _folder(path: Path) -> Any:
    return fedfuse.load_run(path).folder


def test_one_listener_needs_no_tuple(tmp_path: Path) -> None:
    heard: list[Any] = []
    fedfuse.Experiment(TINY).run(tmp_path / "run", listeners=heard.append)
    assert heard[-1]["event"] == "run_finished"


def test_a_folder_below_a_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.touch()
    calls = [
        lambda: fedfuse.run(TINY, out=file / "run"),
        lambda: fedfuse.compare(TINY, out=file),
        lambda: fedfuse.sweep(TINY, OVER, out=file / "sweep"),
    ]
    for call in calls:
        with pytest.raises(RunFolderError, match=r"notes.txt is a file; choose another out=$"):
            call()
    with pytest.raises(FedfuseError, match="holds no run"):
        fedfuse.load_run(file)


def test_ctrl_c_says_how_to_go_on_and_does_not_show_where_it_was_heard(tmp_path: Path) -> None:
    def interrupt(event: Any) -> None:
        if event["event"] == "round_finished":
            raise KeyboardInterrupt

    calls = [
        lambda: fedfuse.run(TINY, out=tmp_path / "run", progress=interrupt),
        lambda: fedfuse.compare(TINY, seeds=[0, 1], out=tmp_path / "study", progress=interrupt),
        lambda: fedfuse.sweep(TINY, OVER, out=tmp_path / "sweep", progress=interrupt),
        lambda: fedfuse.run_all({tmp_path / "all": fedfuse.Experiment(TINY)}, progress=interrupt),
    ]
    for call in calls:
        with pytest.raises(KeyboardInterrupt, match=r"^what was finished is kept, and the same call goes on$") as found:
            call()
        assert found.value.__suppress_context__
        assert len(found.traceback) < 7
    with pytest.raises(KeyboardInterrupt, match=r"the same call, without overwrite=True, goes on$"):
        fedfuse.run(TINY, out=tmp_path / "run", progress=interrupt, overwrite=True)
    assert fedfuse.run(TINY, out=tmp_path / "run").is_finished


def test_one_experiment_and_one_column_need_no_list(tmp_path: Path) -> None:
    experiment = fedfuse.Experiment.load("digits", method="fedavg", federation={"rounds": 1})
    fedfuse.check_data(experiment)
    assert fedfuse.expected_seconds(experiment, tmp_path / "speed.json")
    found = fedfuse.compare(TINY, out=tmp_path / "study")
    assert found.table("md", columns="rounds") == found.table("md", columns=["rounds"])


def test_a_model_of_a_client_that_was_not_kept_says_what_keeps_it(tmp_path: Path) -> None:
    result = fedfuse.run(TINY, out=tmp_path / "run")
    with pytest.raises(RunFolderError, match=r"no model of client 1 by itself; federation\.keep_clients keeps"):
        result.client_model(1)
