"""Changes on top of a file: assignments replace what they name, keyword arguments leave the rest as it is."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml

from fedfuse import Experiment
from fedfuse.core.errors import ConfigError
from fedfuse.core.part import Part
from fedfuse.experiment.config import assign, merge, validate
from fedfuse.models import Mlp
from fedfuse.parts.local import Plain, Proximal
from fedfuse.runtime.optimizers import Adam
from fedfuse.runtime.training import TrainingSettings

SMALL: dict[str, Any] = {"data": {"name": "digits"}, "models": {"m": {"arch": "mlp"}}}


def test_assignments_reach_into_a_method_given_by_name() -> None:
    raw = assign({**SMALL, "method": "fedprox"}, ["method.local.strength=1e-3", "models.m.hidden=[3, 4]"])
    config = validate(raw)
    assert config.recipe.local == Proximal(strength=0.001)
    assert config.models["m"].model_dump()["hidden"] == (3, 4)


def test_assignment_below_a_value_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"the assignment seed.x=1: 'seed' is 3 and has no keys below it"):
        assign({**SMALL, "seed": 3}, ["seed.x=1"])


def test_changes_leave_the_original_alone() -> None:
    raw = {**SMALL, "training": {"epochs": 1}, "partition": {"kind": "dirichlet", "clients": 3, "alpha": 1.0}}
    before = yaml.safe_dump(raw)
    assign(raw, ["training.epochs=2", "partition.kind=iid"])
    merge(raw, {"training": {"epochs": 2}, "partition": {"kind": "iid"}, "models": {"n": {"arch": "cnn1"}}})
    assert yaml.safe_dump(raw) == before


def test_an_assigned_section_is_replaced_and_an_assigned_key_is_not() -> None:
    assert Experiment.load("digits", ["training={epochs: 2}"]).config.training == TrainingSettings(epochs=2)
    assert Experiment.load("digits", ["training.epochs=2"]).config.training.batch_size == 32


STEP = {"kind": "step", "clients": 6, "major_classes": 2, "minor_per_class": 1}


@pytest.mark.parametrize("order", list(itertools.permutations(STEP)), ids=str)
def test_another_kind_takes_the_files_keys_with_it_and_no_assigned_one_in_any_order(order: tuple[str, ...]) -> None:
    partition = Experiment.load("digits", [f"partition.{key}={STEP[key]}" for key in order]).config.partition
    assert partition.model_dump(exclude_unset=True) == STEP


@pytest.mark.parametrize(
    ("assignments", "address", "expected"),
    [
        (["partition.kind=iid", "partition.clients=4"], "partition", {"kind": "iid", "clients": 4}),
        (["partition.kind=iid"], "partition", {"kind": "iid", "clients": 10}),
        (["partition.kind=natural"], "partition.clients", None),
        (["training.optimizer.kind=adam"], "training.optimizer", Adam().model_dump()),
        (["models.mlp.arch=mlp"], "models.mlp.hidden", [64]),
        (["source.kind=uniform_noise"], "source.kind", "uniform_noise"),
        (["data.name=blobs"], "data.public", 0.2),
        (["name=other"], "partition.alpha", 0.05),
    ],
)
def test_a_kind_of_its_own_starts_from_its_own_defaults(assignments: list[str], address: str, expected: Any) -> None:
    found = Experiment.load("digits", assignments).config.model_dump(mode="json")
    for key in address.split("."):
        found = found[key]
    assert found == expected


def test_another_architecture_does_not_inherit_the_files_widths() -> None:
    assert Experiment.load("digits", ["models.mlp.arch=cnn1"]).config.models["mlp"].arch == "cnn1"


OWN = {**SMALL, "method": {"name": "fedprox", "local": {"strength": 0.5}}}


@pytest.mark.parametrize("words", ["method=fedprox", "method.name=fedprox"])
def test_naming_the_files_own_method_keeps_what_the_file_says_of_it(words: str) -> None:
    assert validate(assign(OWN, [words])).recipe.local == Proximal(strength=0.5)
    assert validate(merge(OWN, {"method": "fedprox"})).recipe.local == Proximal(strength=0.5)


@pytest.mark.parametrize("words", ["method=fedavg", "method.name=fedavg"])
def test_another_method_is_the_published_one(words: str) -> None:
    assert validate(assign(OWN, [words])).recipe.local == Plain()
    assert validate(merge(OWN, {"method": {"name": "fedavg"}})).recipe.local == Plain()


def test_keyword_arguments_leave_the_keys_they_do_not_name() -> None:
    preset = Experiment.load("digits").config
    changed = Experiment.load("digits", training={"epochs": 2}, federation={"rounds": 3}).config
    assert changed.training == preset.training.model_copy(update={"epochs": 2})
    assert changed.federation == preset.federation.model_copy(update={"rounds": 3})


def test_keyword_arguments_say_the_same_as_assignments() -> None:
    values = Experiment.load("digits", method={"fuse": {"distiller": {"steps": 7}}}, partition={"alpha": 0.3}).config
    assert values == Experiment.load("digits", ["method.fuse.distiller.steps=7", "partition.alpha=0.3"]).config
    assert values.method.name == "feddf"


def test_none_gives_a_section_its_defaults() -> None:
    assert Experiment.load("digits", training=None).config.training == TrainingSettings()
    assert Experiment.load("digits", evaluation={"target_accuracy": None}).config.evaluation.target_accuracy is None
    with pytest.raises(ConfigError, match="seed is None, but should be a whole number"):
        Experiment.load("digits", seed=None)  # perhaps meant as the file's own


def test_the_models_that_are_named_are_the_models() -> None:
    models = Experiment.load("digits", models={"net": {"arch": "cnn1"}, "mlp": {"projection_head": 5}}).config.models
    assert models.keys() == {"net", "mlp"}
    assert models["mlp"] == Mlp(hidden=(64,), projection_head=5)
    assert Experiment.load("digits", models={"net": {"arch": "cnn1"}}).config.models.keys() == {"net"}


@pytest.mark.parametrize("method", ["fedavg", "fedprox"])
def test_a_part_may_be_given_as_an_object_and_comes_whole(method: str) -> None:
    parts = {"name": method, "local": Proximal(strength=0.5)}
    assert Experiment.load("digits", method=parts).config.recipe.local == Proximal(strength=0.5)
    assert Experiment(**SMALL, method=parts).config.recipe.local == Proximal(strength=0.5)
    assert Experiment.load("digits", training=TrainingSettings()).config.training == TrainingSettings()


class Dynamic(Part):
    kind: str = "dynamic"


@pytest.mark.parametrize("part", [Dynamic(), object(), 3])
def test_a_stranger_in_the_place_of_a_part_gets_a_sentence(part: Any) -> None:
    for make in (lambda **values: Experiment.load("digits", **values), lambda **values: Experiment(**SMALL, **values)):
        with pytest.raises(ConfigError, match=r"method\.local"):
            make(method={"name": "fedavg", "local": part})


def test_a_path_may_be_a_path() -> None:
    data = {"name": "npz", "path": Path("folder") / "x.npz"}
    assert Experiment(data=data, models=SMALL["models"]).config.data.path == "folder/x.npz"
