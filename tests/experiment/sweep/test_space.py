"""What is searched: keys that count only with some parts, and suggestions that follow from what is known."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from typing import Any

import pytest

from fedfuse.core.errors import ConfigError, MissingExtraError
from fedfuse.experiment.sweep import plan_sweep
from fedfuse.experiment.sweep.space import Space
from fedfuse.experiment.sweep.suggesting import Grid, RandomSearch, Suggester, Tpe
from fedfuse.experiment.sweep.trial import Outcome
from fedfuse.experiment.variants import axes_of
from tests.helpers import tiny_config

RAW = tiny_config().model_dump(mode="json")
with_optuna = pytest.mark.skipif(importlib.util.find_spec("optuna") is None, reason="the extra sweep")
RATE = "training.optimizer.learning_rate=0.01..1:log"
MERGES = ("method.merge.kind=mean,ties,momentum", "method.merge.density=0.1..0.9", "method.merge.beta=0.1..0.9")


def space(*over: str, raw: Any = RAW) -> Space:
    return Space("the file", dict(raw), (), tuple(axes_of(over)))


def finished(value: float) -> Outcome:
    return Outcome("finished", value, (value,), (((1, value),),))


def suggesters(of: Space, seed: int = 0) -> list[Suggester]:
    both: list[Suggester] = [RandomSearch(of, seed)]
    return both if importlib.util.find_spec("optuna") is None else [*both, Tpe(of, seed, True)]


def test_keys_of_a_part_are_there_with_the_part_only() -> None:
    found = space(*MERGES)
    found.check()
    for suggester in suggesters(found):
        known: list[Any] = []
        for number in range(25):
            values = suggester.suggest(number, known)
            assert values is not None
            kind = values["method.merge.kind"]
            assert ("method.merge.density" in values) == (kind == "ties")
            assert ("method.merge.beta" in values) == (kind == "momentum")
            merge = found.config(values, 0).recipe.merge.model_dump()
            assert {f"method.merge.{key}": merge[key] for key in merge if f"method.merge.{key}" in values} == values
            known.append((values, finished(0.5)))
        assert len(Counter(values["method.merge.kind"] for values, _ in known)) == 3


@pytest.mark.parametrize(
    "over", [RATE, "training.epochs=1..9", "training.batch_size=2..64:log", "training.clip_norm=.5..2.5"]
)
def test_numbers_stay_between_their_ends_and_have_few_digits(over: str) -> None:
    found = space(over)
    (axis,) = found.axes
    for suggester in suggesters(found):
        for number in range(30):
            (value,) = (suggester.suggest(number, []) or {}).values()
            assert axis.given.low <= value <= axis.given.high  # type: ignore[union-attr]
            assert isinstance(value, int) == axis.given.is_whole  # type: ignore[union-attr]
            assert float(f"{value:.4g}") == value


@with_optuna
def test_a_suggestion_follows_from_number_seed_and_what_is_known() -> None:
    found = space(RATE, "training.batch_size=4,8,16")
    known: list[Any] = []
    for number in range(16):
        values = Tpe(found, 3, True).suggest(number, known)
        assert values == Tpe(found, 3, True).suggest(number, known), "whoever asks again"
        known.append((values, finished(values["training.optimizer.learning_rate"])))
    other = Tpe(found, 4, True).suggest(16, known)
    assert other != Tpe(found, 3, True).suggest(16, known), "another seed"
    worse = [(values, finished(-outcome.value)) for values, outcome in known]
    assert Tpe(found, 3, True).suggest(16, worse) != Tpe(found, 3, True).suggest(16, known), "other results"
    assert Tpe(found, 3, False).suggest(16, worse) == Tpe(found, 3, True).suggest(16, known), "lower is better"


@with_optuna
def test_more_of_what_did_well() -> None:
    """Half of the range is worthless; after some trials the suggestions know."""
    found, known = space("training.optimizer.learning_rate=0.01..1"), []
    for number in range(50):
        values = Tpe(found, 0, True).suggest(number, known)
        rate = values["training.optimizer.learning_rate"]
        known.append((values, finished(1 - abs(rate - 0.8))))
    last = [values["training.optimizer.learning_rate"] for values, _ in known[-20:]]
    assert sum(rate > 0.5 for rate in last) >= 15


@with_optuna
def test_pruned_failed_and_running_trials_are_taken_for_what_they_are() -> None:
    found = space(RATE)
    states = [None, Outcome("failed", reason="x"), Outcome("pruned", curves=(((1, 0.1), (2, 0.2)),)), finished(0.3)]
    known = [({"training.optimizer.learning_rate": 0.1}, state) for state in states]
    study = Tpe(found, 0, True).study(known, 0)
    assert [trial.state.name for trial in study.trials] == ["RUNNING", "PRUNED", "COMPLETE"]
    assert study.trials[1].intermediate_values == {1: 0.1, 2: 0.2}


def test_a_grid_has_every_combination_once() -> None:
    found = Grid(space("training.epochs=1..2", "method.merge.kind=mean,momentum", "method.merge.beta=0.3,0.9"))
    assert [sorted(point.values(), key=str) for point in found.points] == [
        [1, "mean"], [0.3, 1, "momentum"], [0.9, 1, "momentum"],
        [2, "mean"], [0.3, 2, "momentum"], [0.9, 2, "momentum"],
    ]  # fmt: skip
    assert found.suggest(6, []) is None


def test_lists_and_mappings_are_values() -> None:
    found = space("models.mlp.hidden=[4],[8, 8]", "method.upload=[],[{kind: half}]")
    found.check()
    for suggester in suggesters(found):
        values = suggester.suggest(0, [({"models.mlp.hidden": [4], "method.upload": []}, finished(0.1))])
        assert found.config(values or {}, 0).recipe.upload in ((), found.config(values or {}, 0).recipe.upload)
        assert (values or {})["models.mlp.hidden"] in ([4], [8, 8])


@pytest.mark.parametrize(
    ("over", "options", "sentence"),
    [
        ([], {}, "a sweep needs something to vary"),
        ([RATE], {}, "budget=30, or how many numbers: training.optimizer.learning_rate=0.01..1.0:log:5"),
        ([RATE], {"sampler": "gird", "budget": 3}, "unknown sampler 'gird' (did you mean 'grid'?)"),
        (["training.epochs=1,2"], {"sampler": "random"}, "how many trials?"),
        (["training.epochs=1,2"], {"sampler": "random", "budget": 10**9}, "from 1 to 100,000"),
        (["training.epoch=1,2"], {}, "fits nothing here: training: unknown key 'epoch' (did you mean 'epochs'?)"),
        (["training.epochs=0,2"], {}, "training.epochs is 0, but should be greater"),
        (["training.optimizer.learning_rate=-1..1"], {"budget": 3}, "learning_rate is -1, but should be greater"),
        (["method.merge.density=0.1..1"], {"budget": 3}, "method.merge: unknown key 'density'"),
        (["method.merge.kind=mean,tise"], {}, "did you mean 'ties'"),
        (["method=fedavg,fedpox"], {}, "did you mean 'fedprox'"),
        (["training.epochs=1,2"], {"assignments": ["training.epochs=3"]}, "both say what it is"),
    ],
)
def test_what_cannot_be_searched_is_refused(over: list[str], options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)) as refused:
        plan_sweep(RAW, over, **options)
    assert "\n" not in str(refused.value)


def test_without_optuna_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"fedfuse\[sweep\]"):
        Tpe(space(RATE), 0, True)


def test_which_examples_settings_are_judged_on() -> None:
    def judged(raw: Any = RAW, *over: str, **options: Any) -> tuple[str, int]:
        plan = plan_sweep(raw, over or ("training.epochs=1,2",), **options)
        return plan.judge.on, len(plan.remarks)

    assert judged() == ("validation", 1)
    assert judged({**RAW, "data": {**RAW["data"], "validation": 0}}) == ("test", 2)
    assert judged(RAW, "method=fedavg,fedmd") == ("test", 2), "clients of FedMD are asked about test inputs only"
    assert judged(RAW, assignments=["evaluation.best_on=test"]) == ("test", 2)
    config = plan_sweep(RAW, ["training.epochs=1,2"]).space.config({"training.epochs": 1}, 0)
    assert config.evaluation.validation
