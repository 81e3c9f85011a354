"""One table, however its file is written: the same numbers, and a line about what the file told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.data import Dataset, DataSettings, load

HEADER = ("größe", "gewicht", "befund")
ROWS = (("1.5", "20", "gutartig"), ("2.25", "31", "bösartig"), ("-0.5", "7", "gutartig"))
INPUTS = [[1.5, 20], [2.25, 31], [-0.5, 7]]


def text(separator: str = ",", decimal: str = ".", header: bool = True) -> str:
    rows = [*([HEADER] if header else []), *((cell.replace(".", decimal) for cell in row) for row in ROWS)]
    return "".join(separator.join(row) + "\n" for row in rows)


def read(path: Path, content: str | bytes, **settings: Any) -> Dataset:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    section = {"name": "csv", "path": path, "label_column": "befund", **settings}
    return load(DataSettings.model_validate(section), Key(0))


def refused(path: Path, content: str | bytes, **settings: Any) -> str:
    with pytest.raises(DataError) as error:
        read(path, content, **settings)
    assert "\n" not in str(error.value)
    return str(error.value)


WRITTEN: dict[str, tuple[str | bytes, dict[str, Any], str]] = {
    "commas": (text(), {}, ""),
    "semicolons": (text(";"), {}, "separator ';'"),
    "tabs": (text("\t"), {}, "separator tab"),
    "bars": (text("|"), {}, "separator '|'"),
    "as a spreadsheet of Germany": (text(";", ","), {}, "separator ';', decimal commas"),
    "quoted decimal commas": (
        'größe,gewicht,befund\n"1,5",20,gutartig\n"2,25",31,bösartig\n"-0,5",7,gutartig\n',
        {},
        "decimal commas",
    ),
    "told": (text(";", ","), {"separator": ";", "decimal": ","}, ""),
    "told by its name": (text("\t"), {"separator": "tab"}, ""),
    "another sign": (text("~"), {"separator": "~"}, ""),
    "a mark of UTF-8": (text().encode("utf-8-sig"), {}, ""),
    "UTF-16": (text(";").encode("utf-16"), {}, "separator ';', UTF-16"),
    "UTF-16 of another order": ("\ufeff".encode("utf-16-be") + text().encode("utf-16-be"), {}, "UTF-16"),
    "UTF-32": (text().encode("utf-32"), {}, "UTF-32"),
    "latin-1": (text().encode("latin-1"), {"encoding": "latin-1"}, ""),
    "Windows": (text(";").encode("cp1252"), {"encoding": "windows-1252"}, "separator ';'"),
    "without a header": (text(header=False), {"header": False, "label_column": 3}, ""),
    "lines of Windows": (text(";").replace("\n", "\r\n"), {}, "separator ';'"),
    "blank lines": (text().replace("\n", "\n\n"), {}, ""),
    "quotes around everything": (
        text(";").replace(";", '";"').replace("\n", '"\n"').removesuffix('"').join(['"', ""]),
        {},
        "separator ';'",
    ),
    "a separator at the end of all lines": (
        text(";").replace("\n", ";\n"),
        {},
        "separator ';', columns without a name and with nothing in them are left out",
    ),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_a_table_is_the_same_however_it_is_written(tmp_path, how):
    content, settings, told = WRITTEN[how]
    data = read(tmp_path / "d.csv", content, **settings)
    assert data.train.inputs.tolist() == INPUTS
    assert (data.class_names, data.train.labels.tolist()) == (("bösartig", "gutartig"), [1, 0, 1])
    assert data.notes == (*([f"d.csv: {told}"] if told else []), "labels: words, 2 classes: bösartig, gutartig")
    assert data.columns is not None
    assert data.columns.inputs == (("1", "2") if "header" in settings else HEADER[:2])


def test_a_file_that_commas_separate_is_never_taken_for_another(tmp_path):
    table = "a;b,befund\n" + "".join(f"{row},x;y;z\n" for row in range(3)) + "7,w\n"
    data = read(tmp_path / "d.csv", table)
    assert (data.columns.inputs, data.notes[0]) == (("a;b",), "labels: words, 2 classes: w, x;y;z")


def test_gaps_among_decimal_commas(tmp_path):
    table = "a;b;befund\n1,5;k.A.;x\nNA;2,5;y\n;7;y\n"
    data = read(tmp_path / "d.csv", table, empty_cells="fill", empty_values=["k.A."])
    assert data.train.inputs.tolist() == [[1.5, 4.75], [1.5, 2.5], [1.5, 7]]
    assert data.notes[0] == "d.csv: separator ';', decimal commas"


def test_test_files_may_be_written_otherwise(tmp_path):
    (tmp_path / "test.csv").write_bytes(text(";", ",").encode("utf-16"))
    data = read(tmp_path / "d.csv", text(), test_path=tmp_path / "test.csv")
    assert data.test.inputs.tolist() == INPUTS
    assert data.notes[0] == "test.csv: separator ';', UTF-16, decimal commas"


class TestRefusals:
    def test_another_encoding_shows_some_of_it(self, tmp_path):
        sentence = refused(tmp_path / "d.csv", text().encode("latin-1"))
        assert sentence.startswith("d.csv, the header: the text is not UTF-8; save it as UTF-8, or set data.encoding")
        assert "(cp1252 or latin-1 if 'größe,gewich' is what should stand there)" in sentence

    def test_an_encoding_that_it_is_not(self, tmp_path):
        sentence = refused(tmp_path / "d.csv", "a,befund\n1,é\n".encode(), encoding="ascii")
        assert sentence == "d.csv: the text is not ascii; set data.encoding to what it is"

    def test_numbers_that_may_be_thousands_are_asked_about(self, tmp_path):
        table = "a;befund\n1,234;x\n2,500;y\n"
        sentence = refused(tmp_path / "d.csv", table)
        assert "column 'a' holds numbers such as '1,234'; if that is a decimal comma, set data.decimal" in sentence
        assert read(tmp_path / "d.csv", table, decimal=",").train.inputs.flatten().tolist() == pytest.approx(
            [1.234, 2.5]
        )

    def test_commas_and_points_in_one_file(self, tmp_path):
        sentence = refused(tmp_path / "d.csv", "a;b;befund\n1,5;1.5;x\n2,5;2.5;y\n")
        assert "column 'a' has decimal commas and column 'b' decimal points; make them alike" in sentence

    @pytest.mark.parametrize("number", ["1.234,5", "1'234", "12 345", "31.12.2024"])
    def test_thousands_and_dates_become_no_categories(self, tmp_path, number):
        sentence = refused(tmp_path / "d.csv", f"a;befund\n{number};x\n{number};y\n")
        assert f"column 'a' holds '{number}', which is no number as it is written" in sentence

    def test_a_row_that_is_too_long(self, tmp_path):
        sentence = refused(tmp_path / "d.csv", 'a,b,befund\n1,"2\n3",x\n1,2,3,y\n')
        assert "line 4 has 4 cells where the first has 3; put a cell that holds a ',' into quotes" in sentence

    def test_a_file_without_a_header(self, tmp_path):
        sentence = refused(tmp_path / "d.csv", "5.1,3.5,0\n4.9,3.0,1\n", label_column=None)
        assert "begins with numbers (5.1, 3.5, 0) and not with the names of columns; if it has none, set" in sentence

    @pytest.mark.parametrize(
        ("beginning", "sentence"),
        [
            (b"PAR1\x15", "is not a CSV file but a parquet file; set data.name to parquet"),
            (b"PK\x03\x04\x14", "is not a CSV file but a spreadsheet or a zip archive; save the table as CSV"),
            (b"\x1f\x8b\x08", "is not a CSV file but compressed; unpack it"),
        ],
    )
    def test_another_kind_of_file(self, tmp_path, beginning, sentence):
        assert sentence in refused(tmp_path / "d.csv", beginning + bytes(40))

    def test_a_separator_that_it_has_not(self, tmp_path):
        sentence = refused(tmp_path / "d.csv", text(), separator=";")
        assert "data.label_column: d.csv has no column 'befund'" in sentence

    @pytest.mark.parametrize(
        ("settings", "reason"),
        [
            ({"separator": ";;"}, "';;' does not separate cells; give one sign, such as ';', or tab"),
            ({"separator": '"'}, "does not separate cells"),
            ({"separator": "a"}, "does not separate cells"),
            ({"encoding": "latin1x"}, "unknown encoding 'latin1x' (did you mean 'latin-1'?)"),
            ({"encoding": "zip"}, "unknown encoding 'zip'"),
            ({"encoding": "punycode"}, "unknown encoding 'punycode'"),
            ({"decimal": "'"}, "Input should be '.' or ','"),
        ],
    )
    def test_settings(self, settings, reason):
        with pytest.raises(ValueError) as error:  # noqa: PT011
            DataSettings.model_validate({"name": "csv", "path": "d.csv", **settings})
        assert reason in str(error.value)

    @pytest.mark.parametrize("key", ["separator", "decimal", "encoding"])
    def test_they_are_for_csv_files_alone(self, key):
        value = {"separator": ";", "decimal": ",", "encoding": "latin-1"}[key]
        with pytest.raises(ValueError, match=f"data.{key} has no meaning for data.name = parquet"):
            DataSettings.model_validate({"name": "parquet", "path": "d", key: value})

    def test_a_header_is_of_csv_files_alone(self):
        with pytest.raises(ValueError, match=r"data.header has no meaning for data.name = npz"):
            DataSettings.model_validate({"name": "npz", "path": "d", "header": False})

    def test_a_header_without_end(self, tmp_path):
        assert "more than 100,000 columns" in refused(tmp_path / "d.csv", "," * 150_000 + "\n")
        assert "the first row cannot be read" in refused(tmp_path / "d.csv", "a" * 3_000_000 + ",b\n1,2\n")
        assert "the first row is longer than" in refused(tmp_path / "d.csv", "a b c d e," * 300_000 + "b\n")

    def test_long_lines_are_no_trouble(self, tmp_path):
        names = [f"{'a' * 1_200}{number}" for number in range(1_000)]
        table = ",".join([*names, "befund"]) + "\n" + ("1," * 1_000 + "x\n") + ("2," * 1_000 + "y\n")
        assert read(tmp_path / "d.csv", table).train.inputs.sum(dim=1).tolist() == [1_000, 2_000]
