"""Public rows of a table with words and gaps are read as the clients' rows are: by the experiment's own encoding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedfuse.core.errors import FedfuseError
from fedfuse.experiment.assembly import Built, build
from fedfuse.federation.events import EventLog
from tests.helpers import tiny_config, tiny_method

TRAIN = "sex,age,smoker,label\n" + "".join(
    f"{'fmx'[row % 3]},{'' if row == 5 else row},{str(row % 2 == 0).lower()},{row % 2}\n" for row in range(60)
)


def built(folder: Path, source: dict[str, Any], **data: Any) -> Built:
    (folder / "train.csv").write_text(TRAIN)
    section = {"name": "csv", "path": folder / "train.csv", "empty_cells": "fill", "validation": 0, **data}
    config = tiny_config(tiny_method("feddf"), data=section, source=source)
    return build(config, EventLog())


def written(folder: Path, kind: str) -> Path:
    """Fewer categories, another order, a column more, and gaps."""
    rows = {"name": ["a", "b"], "smoker": [True, None], "age": [7.0, None], "sex": ["m", "x"]}
    path = folder / f"public.{kind}"
    if kind == "csv":
        path.write_text("name;smoker;age;sex\na;true;7,0;m\nb;;NA;x\n")
    elif kind == "parquet":
        pq.write_table(pa.table(rows), path)
    else:
        path.write_text('{"name": "a", "smoker": true, "age": 7, "sex": "m"}\n{"name": "b", "sex": "x"}\n')
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_a_file_of_public_rows(tmp_path: Path, kind: str) -> None:
    ready = built(tmp_path, {"kind": "folder", "path": written(tmp_path, kind)})
    fills = {column.name: column.fill for column in ready.dataset.columns.encoding.columns}
    assert ready.source.raw.tolist() == [[0, 1, 0, 7, 1], [0, 0, 1, fills["age"], fills["smoker"]]]


def test_another_table_as_a_dataset(tmp_path: Path) -> None:
    """Its own labels do not matter, nor which categories it happens to have."""
    (tmp_path / "public.csv").write_text("age,sex,smoker,finding\n7,m,true,good\n8,m,false,bad\n")
    data = {"name": "csv", "path": tmp_path / "public.csv", "label_column": "finding"}
    ready = built(tmp_path, {"kind": "dataset", "data": data})
    assert ready.source.raw.tolist() == [[0, 1, 0, 7, 1], [0, 1, 0, 8, 0]]


def test_numbers_without_names_go_by_their_places(tmp_path: Path) -> None:
    """As they did before columns had names here."""
    (tmp_path / "public.csv").write_text("c,d\n1,2\n3,4\n")
    (tmp_path / "numbers.csv").write_text("a,b,label\n" + "".join(f"{row},{row % 7},{row % 2}\n" for row in range(60)))
    data = {"path": tmp_path / "numbers.csv", "empty_cells": "refuse"}
    ready = built(tmp_path, {"kind": "folder", "path": tmp_path / "public.csv"}, **data)
    assert ready.source.raw.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("sex,age\nf,1\n", "public.csv has no column 'smoker', which is an input"),
        ("sex,age,smoker\nq,1,true\nf,2,true\n", "column 'sex', row 0 (line 2): unknown category 'q' (known: f, m, x)"),
        ("a,b\n1,2\n3,4\n", "public.csv has no column"),
    ],
)
def test_what_does_not_fit(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "public.csv").write_text(text)
    with pytest.raises(FedfuseError) as error:
        built(tmp_path, {"kind": "folder", "path": tmp_path / "public.csv"})
    assert sentence in str(error.value)
