"""What columns of a table are: numbers, truth values, categories; or one sentence about what to do with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedfuse.catalogue.keys import find_keys
from fedfuse.catalogue.other_words import WORDS_FOR_DATA
from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.data import Dataset, DataSettings, load
from fedfuse.data.given import data_section

TABLE: dict[str, list[Any]] = {
    "age": [40, 51, 62, 73],
    "smoker": [True, False, True, True],
    "sex": ["f", "m", "f", "x"],
    "dose": [0.5, 1.5, 2.5, 3.5],
    "label": [0, 1, 0, 1],
}
ENCODED = [[40, 1, 1, 0, 0, 0.5], [51, 0, 0, 1, 0, 1.5], [62, 1, 1, 0, 0, 2.5], [73, 1, 0, 0, 1, 3.5]]
NAMES = ("age", "smoker", "sex=f", "sex=m", "sex=x", "dose")


def csv_text(table: dict[str, list[Any]]) -> str:
    rows = zip(*table.values(), strict=True)
    return "\n".join([",".join(table), *(",".join(map(_cell, row)) for row in rows)]) + "\n"


def _cell(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def loaded(folder: Path, kind: str, table: dict[str, list[Any]], **settings: Any) -> Dataset:
    if kind == "tables":
        section = data_section(pa.table(table))
    else:
        section = {"name": kind, "path": folder / f"d.{kind}"}
        if kind == "csv":
            section["path"].write_text(csv_text(table))
        elif kind == "parquet":
            pq.write_table(pa.table(table), section["path"])
        else:
            import json

            rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
            section["path"].write_text("\n".join(map(json.dumps, rows)))
    return load(DataSettings.model_validate({**section, **settings}), Key(0))


def refused(*args: Any, **settings: Any) -> str:
    with pytest.raises(DataError) as error:
        loaded(*args, **settings)
    assert "\n" not in str(error.value)
    return str(error.value)


EVERYWHERE = pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "tables"])


def names_of(data: Dataset) -> tuple[str, ...]:
    assert data.columns is not None
    return tuple(name for column in data.columns.as_encoding.columns for name in column.names)


@EVERYWHERE
def test_every_kind_of_column_from_everywhere(tmp_path, kind):
    data = loaded(tmp_path, kind, TABLE)
    assert data.train.inputs.tolist() == ENCODED
    assert names_of(data) == NAMES
    assert data.columns.inputs == ("age", "smoker", "sex", "dose")
    assert data.columns.beside == ("label",)
    assert data.notes == (
        "smoker: true and false as 1 and 0",
        "sex: 3 categories as columns of 0 and 1: f, m, x",
    )


def test_the_numbers_are_those_of_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(0)
    table = {
        "city": random.choice(["Köln", "Bonn", "Aachen"], 50).tolist(),
        "age": random.integers(20, 90, 50).tolist(),
        "ward": random.choice(["a", "b"], 50).tolist(),
        "label": random.integers(0, 2, 50).tolist(),
    }
    frame = pandas.DataFrame(table).drop(columns="label")
    expected = pandas.get_dummies(frame, dtype=float)
    data = loaded(tmp_path, "csv", table)
    ours = pandas.DataFrame(data.train.inputs.numpy(), columns=[name.replace("=", "_") for name in names_of(data)])
    assert sorted(ours.columns) == sorted(expected.columns)
    for name in expected.columns:
        np.testing.assert_array_equal(ours[name], expected[name])


@EVERYWHERE
def test_numbers_that_are_named_as_categories(tmp_path, kind):
    table = {"answer": [3, 1, 3, 10], "age": [1.0, 2.0, 3.0, 4.0], "label": [0, 1, 0, 1]}
    data = loaded(tmp_path, kind, table, categories=["answer"])
    assert names_of(data) == ("answer=1", "answer=10", "answer=3", "age")
    assert data.train.inputs[:, :3].tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 0]]


def test_what_the_table_itself_calls_categories_is_one(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"answer": [3, 1, 3, 2], "sex": ["1", "2", "1", "1"], "label": [0, 1, 0, 1]})
    frame = frame.astype({"answer": "category", "sex": "category"})
    data = load(DataSettings.model_validate(data_section(frame)), Key(0))
    assert names_of(data) == ("answer=1", "answer=2", "answer=3", "sex=1", "sex=2")
    frame.to_parquet(tmp_path / "d.parquet")
    again = load(DataSettings(name="parquet", path=str(tmp_path / "d.parquet")), Key(0))
    assert names_of(again) == names_of(data)
    assert again.train.inputs.tolist() == data.train.inputs.tolist()


def test_pandas_knows_categories_without_an_example():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"sex": pandas.Categorical(["f", "m"], categories=["f", "m", "x"]), "label": [0, 1]})
    data = load(DataSettings.model_validate(data_section(frame)), Key(0))
    assert names_of(data) == ("sex=f", "sex=m", "sex=x")
    fewer = frame.assign(sex=frame.sex.cat.remove_unused_categories())
    assert data_section(fewer)["path"] != data_section(frame)["path"], "the identity knows them, too"


def test_test_examples_decide_nothing(tmp_path):
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    train.write_text("sex,flag,label\nf,true,0\nm,false,1\n")
    test.write_text("label,flag,sex\n1,1,m\n0,0,m\n")
    settings = DataSettings(name="csv", path=str(train), test_path=str(test))
    data = load(settings, Key(0))
    assert data.test.inputs.tolist() == [[0, 1, 1], [0, 1, 0]]
    test.write_text("sex,flag,label\nx,true,1\n")
    with pytest.raises(DataError, match=r"test.csv, column 'sex', row 0 .*: unknown category 'x' \(known: f, m\)"):
        load(settings, Key(0))
    test.write_text("sex,flag,label\nf,maybe,1\n")
    with pytest.raises(DataError, match=r"column 'flag', row 0 \(line 2\): 'maybe' is neither true nor false"):
        load(settings, Key(0))


def test_clients_that_lack_a_category_share_the_columns_of_the_others(tmp_path):
    for client, rows in (("a", "f,1,0\nm,2,1\n"), ("b", "x,3,1\nx,4,0\n")):
        (tmp_path / f"{client}.csv").write_text(f"sex,age,label\n{rows}")
    data = load(DataSettings(name="csv", path=str(tmp_path), client_files=True), Key(0))
    assert names_of(data) == ("sex=f", "sex=m", "sex=x", "age")
    assert data.train.inputs[:, :3].argmax(dim=1).tolist() == [0, 1, 2, 2]
    assert data.train.owners is not None
    assert data.train.owners.names == ("a", "b")


def test_one_column_of_numbers_called_x_is_one_of_several(tmp_path):
    """The usual names of a column of all inputs are for images and lists; y is no less an input here."""
    table = {"x": [1.0, 2.0], "z": [3.0, 4.0], "label": [0, 1]}
    assert loaded(tmp_path, "csv", table).train.inputs.tolist() == [[1, 3], [2, 4]]


def test_a_single_column_of_numbers(tmp_path):
    data = loaded(tmp_path, "csv", TABLE, input_column="dose")
    assert data.train.inputs.flatten().tolist() == TABLE["dose"]
    assert data.columns.beside == ("age", "smoker", "sex", "label")


class TestRefusals:
    @EVERYWHERE
    def test_names_are_no_categories(self, tmp_path, kind):
        table = {"name": [f"patient {row}" for row in range(51)] * 2, "age": [1] * 102, "label": [0, 1] * 51}
        sentence = refused(tmp_path, kind, table)
        assert "column 'name' holds 51 different words, such as 'patient 0'" in sentence
        assert "leave it out with data.ignore_columns: [name], or make a 0/1 column of each with" in sentence
        assert "data.categories: [name]" in sentence
        assert loaded(tmp_path, kind, table, ignore_columns=["name"]).train.shape == (1,)
        assert loaded(tmp_path, kind, table, categories=["name"]).train.shape == (52,)

    def test_words_that_hardly_repeat_are_no_categories_either(self, tmp_path):
        few = {"name": [f"n{row}" for row in range(11)] + ["n0"], "label": [0, 1] * 6}
        assert "holds 11 different words" in refused(tmp_path, "csv", few)
        enough = {"name": [f"n{row}" for row in range(11)] * 2, "label": [0, 1] * 11}
        assert loaded(tmp_path, "csv", enough).train.shape == (11,)

    def test_a_thousand_and_one_categories(self, tmp_path):
        table = {"name": [f"n{row}" for row in range(1001)], "label": [0, 1] * 500 + [0]}
        sentence = refused(tmp_path, "csv", table, categories=["name"])
        assert "holds more than 1000 different words" in sentence
        assert "data.categories" not in sentence

    def test_more_categories_of_pandas_than_there_may_be(self):
        pandas = pytest.importorskip("pandas")
        names = pandas.Categorical(["n1", "n2"], categories=[f"n{number}" for number in range(1001)])
        section = data_section(pandas.DataFrame({"name": names, "label": [0, 1]}))
        with pytest.raises(DataError, match="column 'name' holds more than 1000 different words"):
            load(DataSettings.model_validate(section), Key(0))

    def test_what_cannot_be_a_category(self, tmp_path):
        pairs = pa.array([{"a": 1}, {"a": 2}])
        sentence = refused(tmp_path, "tables", {"pair": pairs, "b": [1, 2], "label": [0, 1]}, categories=["pair"])
        assert "column 'pair' holds struct<a: int64>, which cannot be learnt from" in sentence
        nested = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pairs)
        with pytest.raises(DataError, match=r"data.train cannot be read as a table: Unsupported cast from dictionary"):
            data_section(pa.table({"pair": nested, "b": [1, 2], "label": [0, 1]}))

    def test_values_of_different_kinds_in_one_column(self, tmp_path):
        (tmp_path / "d.jsonl").write_text('{"age": 1, "label": 0}\n{"age": "x", "label": 1}\n')
        with pytest.raises(DataError, match=r"d.jsonl: column 'age' holds values of different kinds"):
            load(DataSettings(name="jsonl", path=str(tmp_path / "d.jsonl")), Key(0))
        pandas = pytest.importorskip("pandas")
        with pytest.raises(DataError, match=r"column 'age' holds values of different kinds; make them all numbers or"):
            data_section(pandas.DataFrame({"age": [1, "x"], "label": [0, 1]}))
        with pytest.raises(DataError, match="data is no pair; give"):
            data_section(pandas.Series([1, 2]))

    def test_labels_that_are_lists_or_dates(self, tmp_path):
        for label in ([[1], [2]], pa.array([1, 2], pa.date32())):
            assert "label" in refused(tmp_path, "tables", {"a": [1, 2], "label": label})

    @pytest.mark.parametrize("kind", ["csv", "parquet", "tables"])
    def test_a_word_among_numbers_is_no_category(self, tmp_path, kind):
        values = ["40", "?", "50"] if kind != "csv" else [40, "?", 50]
        table = {"age": values, "dose": [1, 2, 3], "label": [0, 1, 0]}
        sentence = refused(tmp_path, kind, table)
        assert ": '?' is not a number; if it stands for an empty cell, set data.empty_values: [\"?\"]" in sentence
        assert "column 'age', row 1" in sentence
        assert "data.categories: [age]" in sentence
        filled = {"empty_values": ["?"], "empty_cells": "fill"}
        if kind == "csv":
            assert loaded(tmp_path, kind, table, **filled).train.inputs[:, 0].tolist() == [40, 45, 50]
        assert loaded(tmp_path, kind, table, categories=["age"]).train.shape == (4,)

    @pytest.mark.parametrize("kind", ["parquet", "tables"])
    def test_dates_and_other_things(self, tmp_path, kind):
        days = pa.array([1, 2], pa.date32())
        sentence = refused(tmp_path, kind, {"day": days, "age": [1, 2], "label": [0, 1]})
        assert "column 'day' holds dates or times, which cannot be learnt from as they are" in sentence
        assert "data.ignore_columns: [day]" in sentence
        pairs = pa.array([{"a": 1}, {"a": 2}])
        assert "holds struct<a: int64>" in refused(tmp_path, kind, {"pair": pairs, "age": [1, 2], "label": [0, 1]})

    @EVERYWHERE
    def test_nothing_at_all(self, tmp_path, kind):
        table = {"a": [None, None], "b": [1, 2], "label": [0, 1]}
        sentence = refused(tmp_path, kind, table)
        assert "column 'a' is empty in every row; leave it out with data.ignore_columns: [a]" in sentence
        assert "has no inputs beside the label" in refused(tmp_path, kind, {"label": [0, 1]})

    def test_files_that_disagree(self, tmp_path):
        (tmp_path / "a.csv").write_text("ward,label\n1,0\n2,1\n")
        (tmp_path / "b.csv").write_text("ward,label\nnorth,0\nsouth,1\n")
        settings = {"name": "csv", "path": tmp_path}
        with pytest.raises(DataError, match=r"column 'ward' holds words in one, such as 'north', and numbers"):
            load(DataSettings.model_validate(settings), Key(0))
        data = load(DataSettings.model_validate({**settings, "categories": ["ward"]}), Key(0))
        assert names_of(data) == ("ward=1", "ward=2", "ward=north", "ward=south")

    @pytest.mark.parametrize("key", ["categories", "ignore_columns", "label_column", "client_column"])
    def test_a_column_that_is_not_there(self, tmp_path, key):
        value = "smokre" if key.endswith("_column") else ["smokre"]
        sentence = refused(tmp_path, "csv", TABLE, **{key: value})
        assert f"data.{key}: d.csv has no column 'smokre' (did you mean 'smoker'?)" in sentence

    @pytest.mark.parametrize(
        ("settings", "reason"),
        [
            ({"categories": ["a"], "ignore_columns": ["a"]}, "data.ignore_columns and data.categories both name 'a'"),
            ({"categories": ["a"], "label_column": "a"}, "data.label_column and data.categories both name 'a'"),
            ({"labels": {0: "a", 1: "a"}}, "all labels are one class"),
            ({"empty_cells": "drop"}, "refuse"),
            ({"seperator": ";"}, r"unknown key 'seperator' \(did you mean 'separator'\?\)"),
            ({"colour": 1}, r"unknown key 'colour' \(known: "),
        ],
    )
    def test_settings(self, settings, reason):
        with pytest.raises(ValueError, match=reason):
            DataSettings.model_validate({"name": "csv", "path": "d.csv", **settings})


def test_every_other_word_for_a_key_leads_to_one():
    assert set(WORDS_FOR_DATA.values()) <= set(DataSettings.model_fields)
    assert not set(WORDS_FOR_DATA) & set(DataSettings.model_fields)
    assert [place.address for place in find_keys("delimiter")] == ["data.separator"]
