"""A model of a table with words, truth values and gaps answers raw rows as the run that made it did, also exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import fedfuse
from fedfuse.core.errors import DataError
from fedfuse.core.tensor_files import read_header
from fedfuse.data.raw import RawTable
from fedfuse.data.readers.encoding import Column, Encoding
from fedfuse.experiment.result import RunResult
from fedfuse.experiment.run import Experiment
from fedfuse.models.export import export
from tests.helpers import tiny_config

pandas = pytest.importorskip("pandas")
pytestmark = pytest.mark.usefixtures("without_pictures")

COLUMNS = ("age", "dose", "sex", "smoker")


def patients(count: int, seed: int, gaps: bool = True) -> Any:
    """Words, truth values, numbers, gaps in all of them, and a finding that depends on each."""
    random = np.random.default_rng(seed)
    frame = pandas.DataFrame(
        {
            "id": np.arange(count),
            "age": random.integers(20, 90, count).astype(float),
            "dose": random.normal(2, 0.7, count).round(2),
            "sex": random.choice(["weiblich", "männlich", "divers"], count, p=[0.45, 0.45, 0.1]),
            "smoker": random.random(count) < 0.4,
        }
    )
    risk = (frame.age - 50) / 15 + frame.dose * (frame.sex == "männlich") + 1.2 * frame.smoker
    frame["finding"] = np.where(risk > 1.4, "bösartig", "gutartig")
    if gaps:
        for place, name in enumerate(COLUMNS):
            frame[name] = frame[name].where(random.random(count) > 0.08 * (place + 1))
    return frame


def written(frame: Any, path: Path) -> Path:
    """As a spreadsheet of Germany writes it."""
    table = frame.copy()
    table["smoker"] = table.smoker.map({True: "true", False: "false"})
    table.to_csv(path, sep=";", decimal=",", encoding="latin-1", index=False)
    return path


def read_back(path: Path) -> Any:
    return pandas.read_csv(path, sep=";", decimal=",", encoding="latin-1")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = tmp_path_factory.mktemp("hospital")
    data = {
        "name": "csv",
        "path": written(patients(150, 1), folder / "train.csv"),
        "test_path": written(patients(80, 2), folder / "test.csv"),
        "label_column": "finding",
        "ignore_columns": ["id"],
        "encoding": "latin-1",
        "empty_cells": "fill",
        "public": 0.2,
    }
    federation = {"rounds": 4, "participation": 1.0}
    config = tiny_config("fedavg", data=data, federation=federation, evaluation={"pictures": False})
    return Experiment(config).run(folder / "run")


@pytest.fixture(scope="module")
def model(run: RunResult) -> Any:
    return fedfuse.load_model(run.folder.final_weights("mlp"))


def test_the_accuracy_on_the_raw_file_is_that_of_the_run(run: RunResult, model: Any) -> None:
    table = read_back(run.folder.path.parent / "test.csv")
    assert table.isna().any(axis=0).sum() == 4
    assert (model.predict(table) == table.finding).mean() == run.accuracy["mlp"]
    assert run.accuracy["mlp"] > 0.75, "something was learnt"


def test_what_was_done_is_said(run: RunResult) -> None:
    assert run.notes[:4] == [
        "train.csv: separator ';', decimal commas",
        "test.csv: separator ';', decimal commas",
        "labels: words, 2 classes: bösartig, gutartig",
        "smoker: true and false as 1 and 0",
    ]
    assert len(run.notes) == 9


def test_a_row_is_the_same_however_it_is_given(run: RunResult, model: Any) -> None:
    table = read_back(run.folder.path.parent / "test.csv")
    whole = table.dropna().head(3)
    expected = model.predict_proba(whole)
    rows = whole.to_dict("records")
    ways = {
        "a frame in another order": whole[list(reversed(whole.columns))],
        "without what is no input": whole[list(COLUMNS)],
        "Arrow": pa.Table.from_pandas(whole, preserve_index=False),
        "mappings": rows,
        "an array": whole[list(COLUMNS)].to_numpy(),
        "lists": whole[list(COLUMNS)].to_numpy().tolist(),
        "words alone": whole[list(COLUMNS)].astype(str).to_numpy(),
        "categories": whole.astype({"sex": "category"}),
        "anything in what is no input": whole.assign(finding=[1, "x", None], id=[[1], "y", 2.0]),
    }
    for way, raw in ways.items():
        np.testing.assert_array_equal(model.predict_proba(raw), expected, err_msg=way)
    for place in range(3):
        np.testing.assert_array_equal(model.predict_proba(whole.iloc[place]), expected[[place]])
        np.testing.assert_array_equal(model.predict_proba(rows[place]), expected[[place]])


def test_a_gap_is_filled_as_in_training(model: Any) -> None:
    encoding = model.known().interface.inputs.encoding
    row = {"age": 40.0, "dose": 2.0, "sex": "divers", "smoker": True}
    for column in encoding.columns:
        if column.kind == "number":
            expected = model.predict_proba({**row, column.name: column.fill})
            for nothing in (None, float("nan")):
                np.testing.assert_array_equal(model.predict_proba({**row, column.name: nothing}), expected)
    assert model.predict_proba({**row, "sex": None}).shape == (1, 2)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"sex": "weiblch"}, r"column 'sex', row 0: unknown category 'weiblch' \(did you mean 'weiblich'\?\)"),
        ({"sex": 3}, r"unknown category '3' \(known: divers, männlich, weiblich\)"),
        ({"age": "old"}, "column 'age', row 0: 'old' is not a number"),
        ({"age": 1e300}, r"column 'age', row 0: 1e\+300 is infinite, or nearly"),
        ({"smoker": "ja"}, "column 'smoker', row 0: 'ja' is neither true nor false"),
        ({"smoker": 2}, "column 'smoker', row 0: 2.* is neither true nor false, nor 1 nor 0"),
        ({"age": b"40"}, "column 'age': the cells are binary; this input is a number"),
        ({"weight": 3}, "the model has never seen column 'weight'; leave out"),
        ({"sex": [1, 2]}, "column 'sex': the cells are list<item: int64>; this input is a category"),
    ],
)
def test_a_row_that_cannot_be_read_is_one_sentence(model: Any, change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence) as error:
        model.predict({"age": 40.0, "dose": 2.0, "sex": "divers", "smoker": True, **change})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({"age": 1, "dose": 1, "smoker": True}, "the table has no column 'sex'; the model reads age, dose, sex"),
        ([[1, 2, "divers"]], "an array of shape 1x3 holds no rows of 4 columns; give a data frame, or rows in"),
        (np.zeros((2, 2, 4)), "holds no rows of 4 columns"),
        ([{"age": 1}, 3], "holds no rows|cannot be read|has no column"),
        ([], "holds no rows"),
        ("new.csv", "holds no rows"),
        (pandas.Series([1, 2]), "the table has no column"),
    ],
)
def test_what_are_no_rows(model: Any, raw: Any, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        model.predict(raw)


def test_a_model_without_filling_refuses_a_gap() -> None:
    raw = RawTable(mean=(0.0,) * 3, std=(1.0,) * 3, encoding=ENCODING)
    with pytest.raises(DataError, match=r"column 'a', row 0: the cell is empty; the model knows no empty cells"):
        raw.read({"a": None, "b": "x"}, (3,))
    assert raw.read({"a": 1, "b": "y"}, (3,)).tolist() == [[1, 0, 1]]


ENCODING = Encoding(columns=(Column(name="a"), Column(name="b", kind="category", categories=("x", "y"))))


def test_the_model_says_what_it_reads(model: Any) -> None:
    assert "reads the columns age, dose, sex (divers, männlich, weiblich), smoker; 2 classes" in str(model)
    names = tuple(f"c{number}" for number in range(5000))
    wide = RawTable(mean=(0.0,) * 5000, std=(1.0,) * 5000, encoding=Encoding.of_numbers(names))
    assert len(wide.in_words((5000,))) <= 500


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["b", "a"], np.array(["a", "b"])),
        ([True, False], np.array([False, True])),
        ([2, 1], np.array([1, 2])),
        ([1, -1], np.array([-1, 1])),
        ([1, 0], np.array([0, 1])),
    ],
    ids=["words", "truth values", "from 1", "minus one", "from 0"],
)
def test_answers_are_labels_as_the_data_has_them(tmp_path: Path, labels: list[Any], classes: Any) -> None:
    frame = pandas.DataFrame({"a": np.arange(60.0), "b": ["x", "y", "z"] * 20, "label": labels * 30})
    experiment = {"models": {"mlp": {"arch": "mlp", "hidden": [6]}}, "federation": {"rounds": 1}}
    data = {"train": frame, "validation": 0}
    model = fedfuse.run(experiment, data=data, evaluation={"pictures": False}, out=tmp_path / "run").model()
    assert model.classes_.dtype == classes.dtype
    np.testing.assert_array_equal(model.classes_, classes)
    assert (model.predict(frame) == frame.label).mean() > 0


def test_files_of_models_that_need_no_more_are_as_ever(tmp_path: Path) -> None:
    """So that earlier versions read them."""
    plain = Experiment(tiny_config("fedavg")).run(tmp_path / "run").folder.final_weights("mlp")
    about = read_header(plain).about
    assert about["format"] == 2
    assert set(about["interface"]) == {"inputs", "class_names", "batch_statistics"}


def test_files_of_models_that_need_more_say_so(run: RunResult) -> None:
    about = read_header(run.folder.final_weights("mlp")).about
    assert about["format"] == 3
    assert about["interface"]["inputs"]["kind"] == "table"


@pytest.mark.parametrize("suffix", [".pt", ".onnx"])
def test_an_exported_file_reads_places_of_categories_and_gaps(
    run: RunResult, model: Any, tmp_path: Path, suffix: str
) -> None:
    if suffix == ".onnx":
        onnxruntime = pytest.importorskip("onnxruntime")
    file = export(model, tmp_path / f"m{suffix}").file
    table = read_back(run.folder.path.parent / "test.csv")[list(COLUMNS)]
    if suffix == ".onnx":
        session = onnxruntime.InferenceSession(file)
        columns = json.loads(session.get_modelmeta().custom_metadata_map["columns"])
    else:
        extra = {"columns": ""}
        network = torch.jit.load(file, _extra_files=extra)
        columns = json.loads(extra["columns"])
    assert [column["name"] for column in columns] == list(COLUMNS)
    codes = np.stack([_codes(table[column["name"]], column.get("categories")) for column in columns], axis=1)
    if suffix == ".onnx":
        (answers,) = session.run(["probabilities"], {"inputs": codes})
    else:
        answers = network(torch.from_numpy(codes))[1].detach().numpy()
    np.testing.assert_allclose(answers, model.predict_proba(table), atol=1e-5)


def _codes(values: Any, categories: list[str] | None) -> Any:
    """By hand, as a program without fedfuse would do it."""
    if categories is not None:
        values = values.map({word: place for place, word in enumerate(categories)})
    elif values.dtype == object:
        values = values.map({True: 1.0, False: 0.0})
    return values.to_numpy(np.float32)


def test_an_unknown_place_is_none_of_the_categories() -> None:
    raw = RawTable(mean=(0.0,) * 3, std=(1.0,) * 3, encoding=ENCODING)
    packed = torch.tensor([[5.0, 0.0], [5.0, 1.0], [5.0, 2.0], [5.0, torch.nan]])
    assert raw.unpacking()(packed).tolist() == [[5, 1, 0], [5, 0, 1], [5, 0, 0], [5, 0, 0]]
