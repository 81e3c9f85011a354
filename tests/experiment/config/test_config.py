"""The schema of an experiment: defaults written out, methods filled in, presets valid."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from fedfuse import Experiment
from fedfuse.core.errors import ConfigError
from fedfuse.experiment import presets
from fedfuse.experiment.config import ExperimentConfig, json_schema, validate
from fedfuse.methods import METHODS
from fedfuse.parts.fuse import EnsembleDistillation
from fedfuse.parts.local import Plain, Proximal
from fedfuse.parts.merge import Momentum
from fedfuse.runtime.optimizers import Sgd

SMALL: dict[str, Any] = {"data": {"name": "digits"}, "models": {"m": {"arch": "mlp"}}}


def test_complete_yaml_is_a_fixed_point() -> None:
    config = validate({**SMALL, "method": "feddf", "methods": {"fedprox": {"local": {"strength": 0.5}}}})
    again = validate(yaml.safe_load(config.to_yaml()))
    assert again == config
    assert again.to_yaml() == config.to_yaml()


def test_every_section_is_written_out() -> None:
    written = yaml.safe_load(validate(SMALL).to_yaml())
    assert written.keys() == ExperimentConfig.model_fields.keys()
    assert written["training"]["optimizer"] == Sgd().model_dump(mode="json")


def test_method_is_recipe_then_experiment_then_own_words() -> None:
    raw = {
        **SMALL,
        "method": {"name": "feddf", "fuse": {"distiller": {"steps": 7}}},
        "methods": {"feddf": {"fuse": {"distiller": {"steps": 5, "batch_size": 9}}}},
    }
    fuse = validate(raw).recipe.fuse
    assert isinstance(fuse, EnsembleDistillation)
    assert (fuse.distiller.steps, fuse.distiller.batch_size, fuse.distiller.evaluate_every) == (7, 9, 100)


def test_other_methods_settings_do_not_leak() -> None:
    config = validate({**SMALL, "method": "fedavg", "methods": {"feddf": {"fuse": {"start": "previous"}}}})
    assert config.recipe == METHODS["fedavg"].recipe.model_copy() or config.recipe.fuse.kind == "none"
    assert config.recipe.fuse.kind == "none"


@pytest.mark.parametrize(
    ("methods", "sentence"),
    [
        (
            {"fedprox": {"local": {"strenght": 7}}},
            "methods.fedprox.local: unknown key 'strenght' (did you mean",
        ),
        (
            {"fedprox": {"local": {"strength": "much"}}},
            "methods.fedprox.local.strength is 'much', but should be",
        ),
        ({"feddf": {"fuse": {"distiller": {"stepz": 1}}}}, "methods.feddf.fuse.distiller: unknown key 'stepz'"),
        ({"fedprox": {"name": "feddf"}}, "methods.fedprox: unknown key 'name'"),
        (
            {"fd": {"screen": [{"kind": "drop_worst"}]}},
            "methods.fd: drop_worst",
        ),
        ({"fedprox": 3}, "methods.fedprox is 3, but should be a mapping"),
        (3, "methods is 3, but should be a mapping"),
    ],
)
def test_what_a_file_says_about_other_methods_is_checked_too(methods: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        validate({**SMALL, "method": "fedavg", "methods": methods})


def test_methods_combine_part_by_part() -> None:
    method = {"name": "feddf", "local": {"kind": "proximal", "strength": 0.3}, "merge": {"kind": "momentum"}}
    recipe = validate({**SMALL, "method": method}).recipe
    assert recipe.local == Proximal(strength=0.3)
    assert recipe.merge == Momentum()
    assert isinstance(recipe.fuse, EnsembleDistillation)


def test_part_of_another_kind_starts_from_its_own_defaults() -> None:
    recipe = validate({**SMALL, "method": {"name": "fedprox", "local": {"kind": "plain"}}}).recipe
    assert recipe.local == Plain()


def test_identity_is_what_determines_the_bits() -> None:
    base = validate(SMALL)
    assert validate({**SMALL, "name": "other"}).sha256() == base.sha256()
    assert validate({**SMALL, "methods": {"feddf": {}}}).sha256() == base.sha256()
    assert validate({**SMALL, "seed": 1}).sha256() != base.sha256()
    assert validate({**SMALL, "compute": {"threads": 2}}).sha256() != base.sha256()


@pytest.mark.parametrize("name", presets.names())
@pytest.mark.parametrize("method", sorted(METHODS))
def test_presets_are_valid_for_every_method(name: str, method: str) -> None:
    assert Experiment.load(name, method=method).config.method.name == method
    assert presets.text(name).startswith("# ")
    assert len(presets.description(name)) < 120


def test_schema_describes_every_key_and_takes_a_method_by_name() -> None:
    schema = json_schema()
    assert schema["properties"].keys() == ExperimentConfig.model_fields.keys()
    assert sorted(schema["required"]) == ["data", "models"]
    assert schema["properties"]["method"]["anyOf"][0]["enum"] == sorted(METHODS)
    json.dumps(schema)


def test_experiment_in_ten_lines_of_python(tmp_path) -> None:  # type: ignore[no-untyped-def]
    result = Experiment(
        data={"name": "blobs", "public": 0.2},
        partition={"kind": "dirichlet", "clients": 3, "alpha": 1.0},
        models={"mlp": {"arch": "mlp", "hidden": [8]}},
        federation={"rounds": 2},
        method={"name": "feddf", "fuse": {"distiller": {"steps": 5, "evaluate_every": 5}}},
    ).run(tmp_path / "run")
    assert result.accuracy.keys() == {"mlp"}
    assert 0 <= result.accuracy["mlp"] <= 1
    assert result.model().feature_size == 8


def test_schema_has_no_part_that_only_a_kind_could_tell_apart() -> None:
    """A file may adjust ``merge.weighting`` without saying which merge: with ``oneOf`` an editor would object."""
    assert '"oneOf"' not in json.dumps(json_schema())
