from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedfuse.data import DataSettings
from fedfuse.data.row_numbers import row_numbers


def hinted(folder: Path, header: str, **more: object) -> list[str]:
    path = folder / "d.csv"
    path.write_text(f"{header}\n{','.join('1' for _ in header.split(','))}\n")
    return row_numbers(DataSettings.model_validate({"name": "csv", "path": str(path), **more}))


@pytest.mark.parametrize("name", ["id", "ID", "index", "", "Unnamed: 0", "patient_id", "PassengerId", "PatientID"])
def test_a_column_whose_name_says_that_it_numbers_rows_is_noticed(tmp_path: Path, name: str) -> None:
    assert hinted(tmp_path, f"{name},width,label") == [name]


@pytest.mark.parametrize("name", ["width", "humid", "valid", "grid", "Fluid", "identity", "idea", "indexed"])
def test_other_names_are_not(tmp_path: Path, name: str) -> None:
    assert hinted(tmp_path, f"{name},label") == []


def test_what_is_no_input_needs_no_hint(tmp_path: Path) -> None:
    assert hinted(tmp_path, "id,width,label", ignore_columns=["id"]) == []
    assert hinted(tmp_path, "patient_id,width,label", client_column="patient_id") == []
    assert hinted(tmp_path, "id,width,label", input_column="width") == []
    assert hinted(tmp_path, "index,width", label_column="index") == []
    assert row_numbers(DataSettings(name="digits")) == []


def test_a_table_of_texts_or_images_reads_no_number_columns(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("id,text,label\n1,good,0\n")
    assert row_numbers(DataSettings(name="csv", path=str(tmp_path / "d.csv"))) == []
    pq.write_table(pa.table({"id": [1], "features": [[1.0, 2.0]], "label": [0]}), tmp_path / "d.parquet")
    assert row_numbers(DataSettings(name="parquet", path=str(tmp_path))) == []


def test_a_folder_is_told_by_its_first_file_and_a_bad_one_by_whoever_reads_it(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "width": [1.0], "label": [0]}), tmp_path / "train-0.parquet")
    assert row_numbers(DataSettings(name="parquet", path=str(tmp_path))) == ["id"]
    assert row_numbers(DataSettings(name="csv", path=str(tmp_path / "nowhere.csv"))) == []
    (tmp_path / "broken.csv").write_bytes(b"")
    assert row_numbers(DataSettings(name="csv", path=str(tmp_path / "broken.csv"))) == []
    assert row_numbers(DataSettings(name="csv", path=str(tmp_path), ignore_columns=("nothing",))) == []
