"""Which runs a comparison has: never another experiment than the one that was asked for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from fedfuse.core.errors import ConfigError
from fedfuse.experiment.comparison import Plan, plan
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.methods import METHODS
from fedfuse.parts.fuse import EnsembleDistillation
from fedfuse.parts.local import Plain, Proximal


def study(*assignments: str, methods: str = "fedprox,fedavg", files: tuple[str, ...] = ("digits",)) -> Plan:
    return plan(files, methods.split(",") if methods else [], [], assignments, None)


def configs(of: Plan) -> dict[str, ExperimentConfig]:
    return {cell.experiment.config.method.name: cell.experiment.config for cell in of.cells}


def write(folder: Path, name: str, **more: Any) -> str:
    path = folder / f"{name}.yaml"
    raw = {"name": name, "data": {"name": "digits"}, "models": {"m": {"arch": "mlp"}}, **more}
    path.write_text(yaml.safe_dump(raw))
    return str(path)


def test_a_change_of_a_method_reaches_every_method_that_has_the_key() -> None:
    found = study("method.local.strength=5", methods="fedprox,fedavg,moon")
    assert configs(found)["fedprox"].recipe.local == Proximal(strength=5)
    assert configs(found)["moon"].recipe.local.model_dump()["strength"] == 5
    assert configs(found)["fedavg"].recipe.parts == METHODS["fedavg"].recipe.parts


def test_whom_a_change_does_not_reach_is_said() -> None:
    assert study("method.local.strength=5").remarks == [
        "--set method.local.strength=5 changes nothing in fedavg: no such key there"
    ]
    assert study("method.local.strength=5", methods="fedprox,moon").remarks == []
    assert study("training.epochs=1").remarks == []


def test_a_change_that_fits_nobody_is_refused_with_the_nearest_key() -> None:
    sentence = (
        "the assignment method.local.strenght=5 fits no method of this comparison: "
        "method.local: unknown key 'strenght' (did you mean 'strength'?)"
    )
    for methods in ("fedprox,fedavg", "fedavg,fedprox", "fedprox"):
        with pytest.raises(ConfigError, match=re.escape(sentence)):
            study("method.local.strenght=5", methods=methods)
    with pytest.raises(ConfigError, match=r"method.fuse.distiller: unknown key 'stepz' \(did you mean 'steps'"):
        study("method.fuse.distiller.stepz=5", methods="fedavg,feddf")


@pytest.mark.parametrize(
    ("assignment", "sentence"),
    [
        ("method.local.strength=oops", "method.local.strength is 'oops', but should be a number"),
        ("method.local.strength=-1", "method.local.strength is -1, but should be greater than"),
        ("method.local.kind=proximity", "unknown kind 'proximity'"),
        ("methods.feddf.fuse.distiller.stepz=1", "methods.feddf.fuse.distiller: unknown key 'stepz'"),
        ("methods.fedpox.local.strength=1", "unknown method 'fedpox' (did you mean 'fedprox'?)"),
        ("method=feddf", "the assignment method=feddf and methods= both say which method is run"),
        ("method.name=feddf", "the assignment method.name=feddf and methods= both say"),
        ("method={local: {strength: 3}}", "and methods= both say"),
    ],
)
def test_a_wrong_change_is_refused(assignment: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        study(assignment)


@pytest.mark.parametrize("order", [1, -1])
def test_changes_are_taken_together_in_any_order(order: int) -> None:
    """A key that only another change makes known, and parts that only fit each other."""
    found = configs(study(*["method.local.kind=proximal", "method.local.strength=5"][::order]))
    assert found["fedavg"].recipe.local == found["fedprox"].recipe.local == Proximal(strength=5)
    parts = ["method.exchange={kind: predictions}", "method.fuse={kind: prediction_distillation}"]
    together = configs(study(*parts[::order], methods="fedavg,feddf"))
    assert {config.recipe.protocol.kind for config in together.values()} == {"predictions"}


def test_a_mapping_that_one_method_cannot_read_changes_the_others() -> None:
    found = study("method.local={strength: 5}")
    assert configs(found)["fedprox"].recipe.local == Proximal(strength=5)
    assert configs(found)["fedavg"].recipe.local == Plain()
    assert len(found.remarks) == 1


def test_the_files_own_method_keeps_its_settings_and_others_are_as_published(tmp_path: Path) -> None:
    method = {"name": "feddf", "fuse": {"distiller": {"steps": 7}}, "local": {"kind": "proximal", "strength": 3}}
    file = write(tmp_path, "own", method=method, methods={"fedprox": {"local": {"strength": 2}}})
    found = configs(study(files=(file,), methods="feddf,fedprox,fedavg"))
    fuse = found["feddf"].recipe.fuse
    assert isinstance(fuse, EnsembleDistillation)
    assert fuse.distiller.steps == 7
    assert found["feddf"].recipe.local == Proximal(strength=3)
    assert found["fedprox"].recipe.local == Proximal(strength=2)
    assert found["fedavg"].recipe.local == Plain()


def test_without_methods_and_seeds_the_files_have_their_own(tmp_path: Path) -> None:
    files = (write(tmp_path, "one", method="fedprox", seed=3), write(tmp_path, "two", method="fedavg", seed=4))
    found = study("method.local.strength=5", methods="", files=files)
    assert [cell.label for cell in found.cells] == ["one fedprox seed 3", "two fedavg seed 4"]
    assert configs(found)["fedprox"].recipe.local == Proximal(strength=5)
    assert found.remarks == ["--set method.local.strength=5 changes nothing in two fedavg: no such key there"]
    assert [cell.label for cell in study("seed=9", methods="", files=files[:1]).cells] == ["one fedprox seed 9"]
    assert configs(study("method=feddf", methods="", files=files[:1])).keys() == {"feddf"}


def test_methods_and_seeds_said_twice_are_refused() -> None:
    with pytest.raises(ConfigError, match="methods=fedavg,feddf,fedavg: write different methods"):
        study(methods="fedavg,feddf,fedavg")
    with pytest.raises(ConfigError, match="digits: seed is -1, but should be greater"):
        plan(["digits"], [], [-1], [], None)
    with pytest.raises(ConfigError, match="the assignment seed=5 and seeds= both say which seed is run"):
        plan(["digits"], [], [0, 1], ["seed=5"], None)


def test_a_mistake_of_the_file_is_the_files(tmp_path: Path) -> None:
    file = write(tmp_path, "own", method={"name": "fedprox", "local": {"strenght": 3}})
    with pytest.raises(ConfigError, match=r"own.yaml: method.local: unknown key 'strenght'"):
        study("method.local.strength=5", files=(file,))


def varied(*over: str, methods: str = "fedprox,fedavg", **more: Any) -> list[str]:
    chosen = methods.split(",") if methods else []
    return [cell.label for cell in plan(["digits"], chosen, [], over=over, **more).cells]


def test_every_value_is_a_variant_of_the_experiment_with_all_methods() -> None:
    assert varied("partition.alpha=0.1,1.0") == [
        "digits-alpha=0.1 fedprox seed 0",
        "digits-alpha=0.1 fedavg seed 0",
        "digits-alpha=1 fedprox seed 0",
        "digits-alpha=1 fedavg seed 0",
    ]
    found = plan(["digits"], ["fedavg"], [3], over={"partition.alpha": [0.1, 1.0]}).cells
    assert [cell.experiment.config.partition.model_dump()["alpha"] for cell in found] == [0.1, 1.0]
    assert [str(cell.folder.path) for cell in found] == [
        "runs/compare-digits/digits-alpha=0.1-fedavg-seed3",
        "runs/compare-digits/digits-alpha=1-fedavg-seed3",
    ]


def test_a_variant_of_a_method_is_called_so_and_its_experiment_is_not() -> None:
    assert varied("method.local.strength=0.1,1", methods="fedprox,fedavg") == [
        "digits fedprox-strength=0.1 seed 0",
        "digits fedprox-strength=1 seed 0",
        "digits fedavg seed 0",
    ], "FedAvg has no such key, and so is there once"
    assert varied("methods.fedprox.local.strength=0.1,1")[2:] == ["digits fedavg seed 0"]


def test_keys_of_a_part_vary_only_where_the_part_is() -> None:
    kinds, keys = "method.local.kind=plain,proximal", "method.local.strength=1,2"
    for order in ((kinds, keys), (keys, kinds)):
        labels = varied(*order, methods="fedavg")
        assert len(labels) == 3
        assert sum("plain" in label for label in labels) == 1
    partitions = ("partition.kind=iid,dirichlet", "partition.alpha=0.1,1")
    assert len(varied(*partitions, methods="", assignments=["partition.clients=5"])) == 3


def test_methods_may_be_what_varies() -> None:
    assert varied("method=fedavg,feddf", methods="") == ["digits fedavg seed 0", "digits feddf seed 0"]
    with pytest.raises(ConfigError, match="over=method=fedavg,feddf and methods= both say"):
        varied("method=fedavg,feddf")


@pytest.mark.parametrize(
    ("over", "sentence"),
    [
        ("partition.alpa=1,2", "fits nothing here: partition: unknown key 'alpa' (did you mean 'alpha'?)"),
        ("method.local.strenght=1,2", "fits nothing here: method.local: unknown key 'strenght'"),
        ("partition.alpha=1,-2", "partition.alpha is -2, but should be greater than 0"),
        ("methods.moon.local.strength=1,2", "method 'moon' is not among those that are run"),
        ("partition.alpha=0.1..1", "say how many"),
    ],
)
def test_a_wrong_variation_is_refused(over: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        varied(over)


def test_what_is_set_is_not_varied_as_well() -> None:
    with pytest.raises(ConfigError, match=r"alpha=3 and over=partition.alpha=1,2 both say what it is"):
        varied("partition.alpha=1,2", assignments=["partition.alpha=3"])
    with pytest.raises(ConfigError, match="1,000,000 combinations"):
        varied("partition.alpha=1..1000", "training.epochs=1..1000")


def test_the_folder_of_a_comparison_says_what_was_changed() -> None:
    def base(*assignments: str, **more: Any) -> set[str]:
        cells = plan(["digits"], ["fedprox", "fedavg"], [], assignments, **more).cells
        return {str(cell.folder.path.parent) for cell in cells}

    assert base() == base("engine.workers=2") == base("federation.rounds=3") == {"runs/compare-digits"}
    assert base("partition.alpha=0.5") == {"runs/compare-digits-alpha=0.5"}
    assert base("method.local.strength=5") == {"runs/compare-digits-strength=5"}
    assert base("partition.alpha=0.5", out="mine") == {"mine"}
    assert base(sections={"training": {"epochs": 1}}) == {"runs/compare-digits-epochs=1"}
