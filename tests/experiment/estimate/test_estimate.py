"""Time, by a clock that counts what networks do: as much is said as is done. And nothing is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

import fedfuse
from fedfuse.experiment.estimate import Estimate, estimate_all, estimate_of, miniature
from fedfuse.experiment.estimate.estimate import in_words
from fedfuse.experiment.run import Experiment
from fedfuse.experiment.sweep import plan_sweep
from tests.helpers import tiny_config, tiny_method

pytestmark = pytest.mark.usefixtures("without_pictures")

CLASSES = 3
LONG = {
    "data": {"name": "blobs", "examples": 600, "validation": 0.1, "public": 0.3},
    "training": {"epochs": 6, "batch_size": 8},
    "compute": {"device": "cpu", "stack": False, "fold": False},
    "federation": {"rounds": 4, "participation": 0.75},
    "engine": {"workers": 0},
}
DISTILLER = {"steps": 150, "epochs": None, "batch_size": 16, "patience": 1000, "evaluate_every": 50}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Seconds are inputs that go through the last layer of a network, those of a training step three times."""
    passed = [0.0]

    def count(module: Any, _given: Any, output: Any) -> None:
        if isinstance(module, nn.Linear) and module.out_features == CLASSES:
            passed[0] += len(output) * (3 if torch.is_grad_enabled() and module.training else 1)

    for clock in ("perf_counter", "process_time"):
        monkeypatch.setattr(f"fedfuse.experiment.estimate.miniature.time.{clock}", lambda: passed[0])
    hook = register_module_forward_hook(count)
    yield passed
    hook.remove()


@pytest.mark.parametrize(
    "method",
    [
        "fedavg",
        {**tiny_method("feddf"), "fuse": {**tiny_method("feddf")["fuse"], "distiller": DISTILLER}},
        {**tiny_method("ds-fl"), "fuse": {**tiny_method("ds-fl")["fuse"], "distiller": {**DISTILLER, "keep": "last"}}},
        "fedmd",
    ],
)
def test_what_networks_will_do_is_what_they_do(tmp_path: Path, counted: list[float], method: Any) -> None:
    config = tiny_config(method, **LONG, evaluation={"pictures": False})
    said = estimate_of(config).seconds
    before = counted[0]
    Experiment(config).run(tmp_path / "run")
    true = counted[0] - before
    assert 0.6 < said / true < 1.7, (said, true)


def test_an_estimate_is_small_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: list[float]
) -> None:
    monkeypatch.chdir(tmp_path)
    config = tiny_config("feddf", **{**LONG, "federation": {"rounds": 4000, "participation": 0.75}})
    estimate_of(config)
    assert not list(tmp_path.iterdir())
    assert counted[0] < 50_000, "however long the run"


def test_seeds_are_taken_for_equally_long_and_jobs_share_them() -> None:
    configs = [tiny_config(seed=seed) for seed in range(4)]
    one, all_ = estimate_of(configs[0]), estimate_all(configs, jobs=2)
    assert all_.runs == 4
    assert all_.bytes_up == 4 * one.bytes_up
    assert all_.processes == 2
    assert not all_.is_exact, "another seed draws other clients"


def test_of_many_experiments_some_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def fake(config: Any) -> Estimate:
        seen.append(config.training.batch_size)
        return Estimate(10.0, 1, 100, 100, True, 5)

    monkeypatch.setattr("fedfuse.experiment.estimate.estimate.estimate_of", fake)
    monkeypatch.setattr("fedfuse.experiment.estimate.estimate.LONG_ENOUGH", -1.0)
    found = estimate_all([tiny_config(training={"batch_size": size}) for size in (4, 8, 16, 32)])
    assert seen == [4]
    assert (found.seconds, found.bytes_up, found.is_exact) == (40.0, 400, False)


def test_a_sweeps_estimate_is_of_all_its_trials() -> None:
    plan = plan_sweep(tiny_config().model_dump(mode="json"), {"training.batch_size": [8, 8.5, 16][::2]}, seeds=[0, 1])
    found = plan.estimate()
    assert found.runs == 4
    assert found.bytes_up == 4 * estimate_of(tiny_config()).bytes_up
    assert not found.may_end_early
    raw = tiny_config().model_dump(mode="json")
    pruned = plan_sweep(raw, {"training.epochs": "1..3"}, 9, sampler="random", prune=True)
    assert pruned.estimate().runs == 9
    assert pruned.estimate().may_end_early


def test_python_says_what_the_command_says() -> None:
    found = fedfuse.estimate(Experiment(tiny_config()), evaluation={"patience": 3})
    assert found.may_end_early
    assert str(found).splitlines()[0].startswith("time     at most about ")
    assert "traffic  at most about " in str(found)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.1, "1 s"), (59, "59 s"), (89, "89 s"), (100, "1.7 min"), (3600, "60 min"), (7200, "2 h"), (10**6, "12 days")],
)
def test_rough_times(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_the_clock_does_not_count_what_the_machine_does_besides(monkeypatch: pytest.MonkeyPatch) -> None:
    walls, owns = iter([0.0, 10.0]), iter([0.0, 2.0])
    monkeypatch.setattr(miniature.time, "perf_counter", lambda: next(walls))
    monkeypatch.setattr(miniature.time, "process_time", lambda: next(owns))
    assert miniature.Clock().seconds == 2.0
