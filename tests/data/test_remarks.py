"""What is said about own data: what was done unasked, and what was hardly meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.data import DataSettings, load


def cautions(path: Path, text: str, **settings: Any) -> tuple[str, ...]:
    path.write_text(text)
    return load(DataSettings.model_validate({"name": "csv", "path": path, **settings}), Key(0)).cautions


def hinted(folder: Path, header: str, **settings: Any) -> list[str]:
    """Of a table whose cells are all different, and whose labels occur twice."""
    width = len(header.split(","))
    rows = "".join(
        ",".join(str(row * width + place) for place in range(width - 1)) + f",{row % 2}\n" for row in range(4)
    )
    said = cautions(folder / "d.csv", f"{header}\n{rows}", **settings)
    return [sentence for sentence in said if sentence.startswith("read as inputs")]


@pytest.mark.parametrize("name", ["id", "ID", "index", "", "Unnamed: 0", "patient_id", "PassengerId", "PatientID"])
def test_a_column_whose_name_says_that_it_numbers_rows_is_noticed(tmp_path: Path, name: str) -> None:
    written = name if name.isidentifier() else f'"{name}"'
    called = name or "a column without a name"
    sentence = f"read as inputs like any other: {called}; data.ignore_columns: [{written}] leaves them out"
    assert hinted(tmp_path, f"{name},width,label") == [sentence]


@pytest.mark.parametrize("name", ["size", "humid", "valid", "grid", "Fluid", "identity", "idea", "indexed"])
def test_other_names_are_not(tmp_path: Path, name: str) -> None:
    assert hinted(tmp_path, f"{name},width,label") == []


def test_what_is_no_input_needs_no_hint(tmp_path: Path) -> None:
    assert hinted(tmp_path, "id,width,label", ignore_columns=["id"]) == []
    assert hinted(tmp_path, "patient_id,width,label", client_column="patient_id") == []
    assert hinted(tmp_path, "id,width,label", input_column="width") == []
    assert load(DataSettings(name="digits"), Key(0)).cautions == ()


def test_the_index_that_pandas_wrote(tmp_path: Path) -> None:
    table = pa.table({"a": [1.0, 3.0] * 2, "label": [0, 1] * 2, "__index_level_0__": [4, 9, 7, 8]})
    pq.write_table(table, tmp_path / "d.parquet")
    data = load(DataSettings(name="parquet", path=str(tmp_path / "d.parquet")), Key(0))
    assert data.cautions[0].startswith("read as inputs like any other: __index_level_0__;")


def test_a_column_that_never_varies(tmp_path: Path) -> None:
    said = cautions(tmp_path / "d.csv", "a,country,b,label\n1,DE,5,0\n2,DE,5,1\n3,DE,5,0\n4,DE,5,1\n")
    sentence = "columns country, b: the same in every row, so that nothing can be learnt; see data.ignore_columns"
    assert said == (sentence,)


def test_a_class_of_one_example(tmp_path: Path) -> None:
    said = cautions(tmp_path / "d.csv", "a,label\n1,benign\n2,malignant\n3,benign\n4,malignant\n5,maligant\n")
    assert said == (
        "class 'maligant' has one example (row 4) (did you mean 'malignant'?), which cannot be both learnt from and "
        "tested; correct the label, or add examples",
    )


def test_many_of_them_are_counted(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=np.eye(9), y=np.arange(9))
    data = load(DataSettings(name="npz", path=str(tmp_path / "d.npz")), Key(0))
    assert [sentence.partition(" (")[0] for sentence in data.cautions] == [
        "class '0' has one example",
        "class '1' has one example",
        "class '2' has one example",
        "6 more classes have one example each",
    ]


def test_a_hundred_columns_of_categories_share_a_line(tmp_path: Path) -> None:
    header = ",".join([*(f"c{number}" for number in range(100)), *(f"t{number}" for number in range(20)), "label"])
    rows = [["x"] * 100 + ["true"] * 20 + ["0"], ["y"] * 100 + ["false"] * 20 + ["1"]] * 2
    (tmp_path / "d.csv").write_text("\n".join([header, *map(",".join, rows)]))
    data = load(DataSettings(name="csv", path=str(tmp_path / "d.csv")), Key(0))
    assert data.notes == (
        "t0, t1, t2, t3, t4, t5, t6, t7 and 12 more: true and false as 1 and 0",
        "c0, c1, c2, c3, c4, c5, c6, c7 and 92 more: categories as 200 columns of 0 and 1",
    )


def test_datasets_of_the_catalogue_and_toys_say_nothing() -> None:
    for name in ("digits", "blobs"):
        data = load(DataSettings(name=name), Key(0))
        assert (data.notes, data.cautions) == ((), ())


def test_columns_beside_a_column_of_texts_are_not_read_which_is_said(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("text,age,label\ngood,1,yes\nbad,2,no\n")
    settings = {"name": "csv", "path": tmp_path / "d.csv"}
    data = load(DataSettings.model_validate(settings), Key(0))
    assert data.notes[0] == "d.csv: column 'text' is the input; not read: age"
    assert data.class_names == ("no", "yes")
    asked = load(DataSettings.model_validate({**settings, "input_column": "text"}), Key(0))
    assert asked.notes == ("labels: words, 2 classes: no, yes",)


def test_names_that_would_write_elsewhere_on_the_screen(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text('"a\x1b[2J\nb",id\x07_id,label\nx,1,"y\x1b[0m"\nz,2,"n\n"\n')
    data = load(DataSettings(name="csv", path=str(tmp_path / "d.csv")), Key(0))
    said = [*data.notes, *data.cautions]
    assert len(said) == 6
    assert all(line.isprintable() for line in said), said
    assert "a\\x1b[2J\\nb: 2 categories as columns of 0 and 1: x, z" in said


@pytest.mark.parametrize(("key", "value"), [("categories", ["age"]), ("empty_cells", "fill"), ("empty_values", ["?"])])
def test_settings_of_columns_that_would_do_nothing_are_refused(tmp_path: Path, key: str, value: Any) -> None:
    (tmp_path / "d.csv").write_text("text,age,label\ngood,1,yes\nbad,2,no\n")
    settings = DataSettings.model_validate({"name": "csv", "path": tmp_path / "d.csv", key: value})
    with pytest.raises(ConfigError, match=rf"data\.{key} is for columns of a table, but d.csv has one input"):
        load(settings, Key(0))


def test_words_that_are_spelt_alike_are_pointed_out(tmp_path: Path) -> None:
    rows = "1,a,Ill\n2,A,ill\n" * 2
    assert cautions(tmp_path / "d.csv", f"age,ward,label\n{rows}") == (
        "classes 'Ill' and 'ill' are two; data.labels can make one of them",
        "ward: the categories 'A' and 'a' are two; make them alike if they are one",
    )


def test_a_second_label_among_the_inputs_is_pointed_out(tmp_path: Path) -> None:
    said = cautions(tmp_path / "d.csv", "age,target,label\n" + "1,2,0\n2,3,1\n" * 2)
    sentence = (
        "read as inputs, though by their names they are labels: target; data.ignore_columns: [target] leaves them out"
    )
    assert said == (sentence,)
    assert cautions(tmp_path / "d.csv", "x,y,label\n" + "1,2,0\n2,3,1\n" * 2) == ()


def test_a_word_for_no_label_is_pointed_out(tmp_path: Path) -> None:
    said = cautions(tmp_path / "d.csv", "age,label\n" + "1,NULL\n2,ill\n" * 2)
    assert said == ("class 'NULL' is learnt like any other; if it says that the label is missing, remove these rows",)


def test_test_examples_that_are_learnt_are_pointed_out(tmp_path: Path) -> None:
    rows = [f"{number},{number % 2}\n" for number in range(20)]
    (tmp_path / "t.csv").write_text("a,label\n" + "".join(rows[:3]) + "100,0\n")
    said = cautions(tmp_path / "d.csv", "a,label\n" + "".join(rows), test_path=tmp_path / "t.csv")
    assert said == ("3 of 4 test examples have the very inputs of training examples",)
    (tmp_path / "t.csv").write_text("a,label\n100,0\n101,1\n")
    assert cautions(tmp_path / "d.csv", "a,label\n" + "".join(rows), test_path=tmp_path / "t.csv") == ()


def test_what_the_test_examples_are_is_said_once() -> None:
    with pytest.raises(ValueError, match=r"data.test and data.test_path both say which examples are for testing"):
        DataSettings(name="csv", path="a.csv", test_path="b.csv", test=0.5)
    with pytest.raises(ValueError, match=r"data.path and data.test_path are the same"):
        DataSettings(name="csv", path="a.csv", test_path="a.csv")
