from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.data import DataSettings, load
from fedfuse.data.readers import Reading, read_csv
from fedfuse.data.readers.contents import Columns


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_numbers_labels_and_clients(tmp_path: Path) -> None:
    path = write(tmp_path / "d.csv", "width,who,height,label\n1,ann,0.5,1\n2,bob,-3e2,0\n")
    contents = read_csv([path], Reading(client_column="who"))
    np.testing.assert_array_equal(contents.inputs, np.array([[1, 0.5], [2, -300]], np.float32))
    assert contents.labels.tolist() == [1, 0]
    assert contents.clients is not None
    assert contents.clients.tolist() == ["ann", "bob"]


def test_ignored_columns_are_as_if_they_were_not_there(tmp_path: Path) -> None:
    whole = write(tmp_path / "d.csv", "id,name,width,label,y\n7,ann,0.5,1,9\n8,bob,-3e2,0,9\n")
    part = write(tmp_path / "part.csv", "width,y\n0.5,9\n-3e2,9\n")
    read = read_csv([whole], Reading(ignored=("id", "name", "label")))
    expected = read_csv([part], Reading())
    np.testing.assert_array_equal(read.inputs, expected.inputs)
    np.testing.assert_array_equal(read.labels, expected.labels)


def test_an_ignored_column_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    path = write(tmp_path / "d.csv", "id,width,label\n7,0.5,1\n")
    with pytest.raises(DataError, match=r"data.ignore_columns: d.csv has no column 'idd' \(did you mean 'id'\?\)"):
        read_csv([path], Reading(ignored=("idd",)))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("a,b,label\n1,1,0\n1,x,1\n", r"d\.csv, column 'b', row 1 \(line 3\): 'x' is not a number"),
        ("a,label\n1,0\n2,cat\n", r"column 'label', row 1 \(line 3\): 'cat' is not a number"),
        ("a,label\n1,0\n,1\n", r"column 'a', row 1 \(line 3\): the cell is empty; set data\.empty_cells of the"),
        ("a,label\n1,0\nn/a,1\n,0\n", r"row 1 \(line 3\): the cell is empty, and so are 1 others of the column"),
        ('a,b,label\n1,"two\nlines",0\n,x,1\n', r"column 'a', row 1 \(line 4\): the cell is empty"),
        ("a,label\n1,0\ninf,1\n", r"column 'a', row 1 \(line 3\): inf is infinite"),
        ("a,label\n1,0\n2,\n", r"row 1 \(line 3\): the label is missing"),
        ("a,label\n1,0.5\n", "labels are float64"),
        ("a,label\n1,0\n2\n", r"cannot be read as CSV: line 3 has 1 cell where the first has 2; put a cell"),
        ("a,label\n", "is empty"),
        ("", "cannot be read as CSV"),
        ("a,b\n1,0\n", "has no column label"),
        ("a,label\n1,0\n2,1 é\n".encode("latin-1"), r"d\.csv, row 1: the text is not UTF-8"),
    ],
)
def test_bad_files_are_named_by_row(tmp_path: Path, content: str | bytes, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        read_csv([write(tmp_path / "d.csv", content)], Reading())


def test_columns_are_remembered_by_name(tmp_path: Path) -> None:
    path = write(tmp_path / "d.csv", "id,width,who,height,label\n7,1,ann,0.5,1\n8,2,bob,-3e2,0\n")
    contents = read_csv([path], Reading(client_column="who", ignored=("id",)))
    assert contents.columns == Columns(("width", "height"), ("who", "label", "id"))
    one = read_csv([path], Reading(client_column="who", input_column="height"))
    assert one.columns == Columns(("height",), ("id", "width", "who", "label"))


def test_columns_are_known_by_their_names_and_not_by_their_places(tmp_path: Path) -> None:
    one = write(tmp_path / "one.csv", "width,height,label\n1,2,0\n3,4,1\n")
    other = write(tmp_path / "other.csv", "height,label,width\n2,0,1\n4,1,3\n")
    data = load(DataSettings(name="csv", path=str(one), test_path=str(other)), Key(0))
    assert data.test is not None
    assert data.test.inputs.tolist() == data.train.inputs.tolist() == [[1, 2], [3, 4]]
    assert load(DataSettings(name="csv", path=str(tmp_path)), Key(0)).train.inputs.tolist() == [[1, 2], [3, 4]] * 2
    with pytest.raises(DataError, match=r"other.csv and one.csv have different input columns \(height where .* width"):
        read_csv([one, other], Reading())  # nobody has looked at them together


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        ("width,heigth,label\n1,2,0\n", r"b.csv has no column 'height', which a.csv has"),
        ("width,height,label,depth\n1,2,0,3\n", r"b.csv has a column 'depth', which a.csv lacks"),
    ],
)
def test_files_of_one_dataset_have_the_same_columns(tmp_path: Path, second: str, sentence: str) -> None:
    write(tmp_path / "a.csv", "width,height,label\n1,2,0\n3,4,1\n")
    write(tmp_path / "b.csv", second)
    with pytest.raises(DataError, match=sentence):
        load(DataSettings(name="csv", path=str(tmp_path)), Key(0))


def test_a_test_file_lacks_no_input_and_may_have_other_columns(tmp_path: Path) -> None:
    settings = {"name": "csv", "path": str(write(tmp_path / "train.csv", "a,width,label\n1,2,0\n3,4,1\n"))}
    more = write(tmp_path / "more.csv", "id,width,a,label,id\n7,2,1,0,7\n")
    data = load(DataSettings.model_validate({**settings, "test_path": str(more)}), Key(0))
    assert data.test is not None
    assert data.test.inputs.tolist() == [[1, 2]]
    fewer = write(tmp_path / "fewer.csv", "widht,a,label\n2,1,0\n")
    with pytest.raises(
        DataError, match=r"fewer.csv has no column 'width', which is an input \(did you mean 'widht'\?\)"
    ):
        load(DataSettings.model_validate({**settings, "test_path": str(fewer)}), Key(0))


def test_the_cache_knows_the_columns_too(tmp_path: Path) -> None:
    settings = DataSettings(name="csv", path=str(write(tmp_path / "d.csv", "a,label,b\n1,0,2\n3,1,4\n")))
    first, again = load(settings, Key(0)), load(settings, Key(0))
    assert first.columns == again.columns == Columns(("a", "b"), ("label",))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            "a,,,label\n1,2,3,0\n",
            r"has 2 columns without a name \(2, 3\); give each one, or leave them all out with data",
        ),
        ("a,b,b,label\n1,2,3,0\n", "has 2 columns 'b'; give each a name of its own"),
        ("5.1,3.5,0.2,setosa\n4.9,3.0,0.2,setosa\n", r"begins with numbers \(5.1, 3.5, 0.2, setosa\) and not with"),
        ("1,1,0.2,setosa\n4.9,3.0,0.2,setosa\n", "begins with numbers .* set data.header to false"),
        ("a b label\n1 2 x\n", "set data.label_column to one of: a b label; if it has several, set data.separator"),
        ("a,b,\n1,2,x\n", 'set data.label_column to one of: a, b, ""'),
        ("Patients\na,label\n1,0\n", "line 2 has 2 cells where the first has 1; the first row must name the columns"),
        ("a,label\n", "d.csv is empty; it must hold at least one example"),
        ("a,label\n50%,x\n60%,y\n", "column 'a' holds '50%', which is no number as it is written; take out signs"),
        ("a,label\n€ 3,x\n€ 4,y\n", "holds '€ 3', which is no number"),
    ],
)
def test_headers_and_cells_that_are_not_what_they_should_be(tmp_path: Path, content: str, sentence: str) -> None:
    path = write(tmp_path / "d.csv", content)
    with pytest.raises(DataError, match=sentence):
        load(DataSettings(name="csv", path=str(path)), Key(0))


def test_columns_without_a_name_can_be_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "d.csv", "a,,,label\n1,2,3,0\n4,5,6,1\n")
    assert load(DataSettings(name="csv", path=str(path), ignore_columns=[""]), Key(0)).train.inputs.tolist() == [
        [1],
        [4],
    ]


def test_blanks_around_names_and_words_are_left_out_but_for_texts(tmp_path: Path) -> None:
    path = write(tmp_path / "d.csv", "age, ward, label\n1, a, ill\n2, b,well\n3,a ,ill\n4,b,well \n")
    data = load(DataSettings(name="csv", path=str(path)), Key(0))
    assert data.class_names == ("ill", "well")
    assert data.notes[0] == "d.csv: blanks around names and words are left out"
    text = write(tmp_path / "t.csv", "text,label\n good ,0\nbad,1\n")
    assert load(DataSettings(name="csv", path=str(text)), Key(0)).notes == ()
