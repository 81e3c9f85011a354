from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fedfuse.data import DataSettings
from tests.helpers import tiny_config


@pytest.mark.parametrize("value", [0, 1, 5000, 0.0, 0.25, 0.999])
def test_shares_and_counts_keep_their_type(value: float) -> None:
    kept = DataSettings(name="digits", public=value).public
    assert kept == value
    assert type(kept) is type(value)


@pytest.mark.parametrize("value", [True, False, 1.0, 1.5, -1, -0.1, "0.1", None, float("nan")])
def test_what_is_neither_share_nor_count_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        DataSettings(name="digits", validation=value)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"name": "cifar"}, "unknown dataset 'cifar'"),
        ({"name": "hf:"}, "unknown dataset"),
        ({"name": "npz"}, "data.path must say where"),
        ({"name": "mnist", "examples": 5}, "data.examples has no meaning for data.name = mnist"),
        ({"name": "blobs", "resize": 5}, "data.resize has no meaning"),
        ({"name": "blobs", "augment": ["flip"]}, "data.augment has no meaning"),
        ({"name": "mnist", "label_column": "y"}, "data.label_column has no meaning"),
        ({"name": "hf:a/b", "path": "c"}, "data.path has no meaning"),
        ({"name": "mnist", "client_files": True}, "data.client_files has no meaning"),
        ({"name": "csv", "path": "d", "client_column": "c", "client_files": True}, "both say whose each example is"),
        ({"name": "npz", "path": "d", "ignore_columns": ["id"]}, "data.ignore_columns has no meaning"),
        (
            {"name": "csv", "path": "d", "label_column": "y", "ignore_columns": ["id", "y"]},
            "data.label_column and data.ignore_columns both name 'y'",
        ),
        ({"name": "python", "path": "a:b", "test_path": "c"}, "data.test_path has no meaning"),
        ({"name": "digits", "augment": ["flip", "flip"]}, "twice"),
        ({"name": "digits", "colour": True}, "colour"),
    ],
)
def test_mistakes_are_named(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        DataSettings.model_validate(values)


def test_every_field_is_described_in_the_schema_and_survives_json() -> None:
    assert all("description" in field for field in DataSettings.model_json_schema()["properties"].values())
    settings = DataSettings(name="digits", test=100, validation=0.2, augment=("flip",))
    assert DataSettings.model_validate_json(settings.model_dump_json()) == settings


def test_a_path_of_python_is_the_text_that_a_file_would_hold() -> None:
    settings = DataSettings.model_validate({"name": "csv", "path": Path("a") / "b.csv", "test_path": Path("c.csv")})
    assert (settings.path, settings.test_path) == ("a/b.csv", "c.csv")
    assert settings == DataSettings(name="csv", path="a/b.csv", test_path="c.csv")
    with pytest.raises(ValidationError, match="is no path that a file of an experiment could name"):
        DataSettings.model_validate({"name": "csv", "path": Path("a\udcff.csv")})


def test_keys_that_are_not_used_leave_the_identity_of_older_experiments_alone() -> None:
    plain = tiny_config("fedavg").identity()["data"]
    assert set(plain) == {
        *("name", "path", "test_path", "input_column", "label_column", "client_column", "ignore_columns"),
        *("client_files", "resize", "channels", "text", "train_limit", "test_limit", "test", "validation", "public"),
        *("split", "normalisation", "augment", "crop_padding", "examples", "classes", "spread"),
    }


@pytest.mark.parametrize(
    "change",
    [
        {"labels": {"0": "a", "1": "b"}},
        {"categories": ["a"]},
        {"empty_cells": "fill"},
        {"empty_values": ["?"]},
        {"separator": ";"},
        {"decimal": ","},
        {"encoding": "latin-1"},
        {"header": False},
        {"normalisation": {"mean": [1], "std": [2]}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_keys_that_are_used_are_part_of_it(change: dict[str, Any]) -> None:
    data = {"name": "csv", "path": "d.csv"}
    one, other = (tiny_config("fedavg", data={**data, **more}).sha256() for more in ({}, change))
    assert one != other
    source = {"kind": "dataset", "data": {**data, **change}}
    if "normalisation" not in change:
        plain = tiny_config("fedavg", source={"kind": "dataset", "data": data})
        assert plain.sha256() != tiny_config("fedavg", source=source).sha256()
