"""A party's own data in every format: it becomes what the experiment has, or one sentence says why it cannot."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from fedfuse.catalogue.card import Normalisation
from fedfuse.core.errors import ConfigError, DataError
from fedfuse.data import Dataset, DataSettings, Examples
from fedfuse.data.readers.contents import Columns
from fedfuse.data.readers.encoding import Column, Encoding
from fedfuse.data.tokens import Words
from fedfuse.flower.own_data import OwnData

CLASSES = ("benign", "malignant", "none")
PICTURES = np.arange(6 * 16, dtype=np.uint8).reshape(6, 4, 4)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def dataset(inputs: torch.Tensor, classes: tuple[str, ...] = CLASSES, **others: object) -> Dataset:
    labels = torch.arange(len(inputs)) % len(classes)
    return Dataset("theirs", Examples(inputs, labels), None, classes, Normalisation((), ()), "elsewhere", **others)


IMAGES = OwnData(dataset(torch.zeros(6, 1, 4, 4, dtype=torch.uint8)), DataSettings(name="digits"))
NUMBERS = OwnData(
    dataset(torch.zeros(6, 2), columns=Columns(("age", "dose"), ("label", "id"))),
    DataSettings(name="csv", path="theirs.csv", ignore_columns=("id",)),
)
TEXTS = OwnData(
    dataset(torch.zeros(6, 5, dtype=torch.int32), tokenizer=Words(5, 100, True)), DataSettings(name="digits")
)


def read(own: OwnData, path: object, **config: object) -> Examples:
    examples = own.of_node({"data": str(path), **config})
    assert examples is not None
    return examples


def refused(own: OwnData, path: object, error: type[Exception] = DataError) -> str:
    with pytest.raises(error) as caught:
        read(own, path)
    return str(caught.value)


def csv_file(folder, text: str, name: str = "ours.csv"):
    (folder / name).write_text(text)
    return folder / name


def npz_file(folder, **arrays):
    np.savez(folder / "ours.npz", **arrays)
    return folder / "ours.npz"


def test_a_node_that_names_nothing():
    assert IMAGES.of_node({"client": 0}) is None


class TestImages:
    @pytest.mark.parametrize("names", [("x", "y"), ("inputs", "labels"), ("x_train", "y_train")])
    def test_gray_pictures_without_a_channel(self, tmp_path, names):
        examples = read(IMAGES, npz_file(tmp_path, **dict(zip(names, (PICTURES, LABELS), strict=True))))
        assert torch.equal(examples.inputs, torch.from_numpy(PICTURES)[:, None])
        assert examples.labels.tolist() == LABELS.tolist()

    def test_words_as_labels(self, tmp_path):
        words = np.array(CLASSES)[LABELS]
        assert read(IMAGES, npz_file(tmp_path, x=PICTURES, y=words)).labels.tolist() == LABELS.tolist()

    def test_a_folder_is_numbered_by_name_even_if_it_lacks_classes(self, tmp_path):
        for name, shade in (("none", 7), ("malignant", 9)):
            (tmp_path / "photos" / name).mkdir(parents=True)
            Image.fromarray(np.full((4, 4), shade, np.uint8)).save(tmp_path / "photos" / name / "1.png")
        examples = read(IMAGES, tmp_path / "photos")
        assert {int(y): int(x.max()) for x, y in zip(examples.inputs, examples.labels, strict=True)} == {1: 9, 2: 7}

    def test_colour_becomes_what_the_experiment_has(self, tmp_path):
        colour = np.repeat(PICTURES[..., None], 3, axis=3)
        assert read(IMAGES, npz_file(tmp_path, x=colour, y=LABELS)).inputs.shape == (6, 1, 4, 4)

    @pytest.mark.parametrize(
        ("inputs", "labels", "reason"),
        [
            (np.zeros((6, 8, 8), np.uint8), LABELS, "inputs of shape 1x8x8 (uint8); the experiment's have shape 1x4x4"),
            (
                np.zeros((6, 1, 4, 4)),
                LABELS,
                "inputs of shape 1x4x4 (float32); the experiment's have shape 1x4x4 (uint8)",
            ),
            (PICTURES.astype(np.int64), LABELS, "the images are int64; they must be uint8 from 0 to 255"),
            (PICTURES, np.array([0, 1, 2, 0, 12, 2]), "row 4: label 12 is out of range; 3 classes are 0..2"),
            (PICTURES, np.array([0, 1, 2, 0, -1, 2]), "row 4: label -1 is out of range"),
            (PICTURES, np.array(["benign"] * 5 + ["benine"]), "row 5: unknown class 'benine' (did you mean 'benign'?)"),
            (PICTURES, LABELS[:5], "do not fit 5 labels"),
            (PICTURES, LABELS / 2, "the labels are float64"),
            (PICTURES[:0], LABELS[:0], "is empty"),
            (PICTURES, np.array([{}] * 6), "cannot be read as an npz archive of plain arrays"),
        ],
    )
    def test_what_does_not_fit(self, tmp_path, inputs, labels, reason):
        assert reason in refused(IMAGES, npz_file(tmp_path, x=inputs, y=labels))

    def test_other_names_of_arrays(self, tmp_path):
        sentence = refused(IMAGES, npz_file(tmp_path, images=PICTURES, labels=LABELS))
        assert "ours.npz holds images, labels; it must hold" in sentence

    def test_a_missing_and_an_empty_file(self, tmp_path):
        assert f"{tmp_path / 'gone.npz'} does not exist" in refused(IMAGES, tmp_path / "gone.npz")
        (tmp_path / "ours.npz").touch()
        assert "cannot be read as an npz archive" in refused(IMAGES, tmp_path / "ours.npz")

    @pytest.mark.parametrize("name", ["ours.csv", "ours.npz", "ours.yaml"])
    def test_a_pipe_keeps_nobody_waiting(self, tmp_path, name):
        os.mkfifo(tmp_path / name)
        assert "does not exist" in refused(IMAGES, tmp_path / name)

    def test_a_name_longer_than_any_file(self, tmp_path):
        assert "does not exist" in refused(IMAGES, tmp_path / ("x" * 5000))

    def test_a_class_that_the_experiment_does_not_have(self, tmp_path):
        (tmp_path / "photos" / "cyst").mkdir(parents=True)
        Image.fromarray(PICTURES[0]).save(tmp_path / "photos" / "cyst" / "1.png")
        assert "unknown class 'cyst' (known: benign, malignant, none)" in refused(IMAGES, tmp_path / "photos")

    def test_a_table_is_no_picture(self, tmp_path):
        sentence = refused(IMAGES, csv_file(tmp_path, "a,b,label\n1,2,0\n"))
        assert "ours.csv holds inputs of shape 2 (float32)" in sentence


class TestNumbers:
    def test_columns_are_found_by_name_whatever_else_there_is(self, tmp_path):
        path = csv_file(tmp_path, "name,dose,label,age,ward\nmia,1.5,malignant,40,a\nnoa,2.5,benign,50,b\n")
        examples = read(NUMBERS, path)
        assert examples.inputs.tolist() == [[40, 1.5], [50, 2.5]]
        assert examples.labels.tolist() == [1, 0]

    def test_numbers_as_labels_count_from_0(self, tmp_path):
        assert read(NUMBERS, csv_file(tmp_path, "age,dose,label\n1,2,2\n3,4,0\n")).labels.tolist() == [2, 0]

    def test_a_folder_of_tables(self, tmp_path):
        for number in range(2):
            csv_file(tmp_path, f"age,dose,label,id\n{number},2,1,7\n", f"{number}.csv")
        assert read(NUMBERS, tmp_path).inputs[:, 0].tolist() == [0, 1]

    def test_parquet(self, tmp_path):
        table = pa.table({"label": ["none", "benign"], "dose": [1.0, 2.0], "age": [3, 4], "note": ["a", "b"]})
        pq.write_table(table, tmp_path / "ours.parquet")
        examples = read(NUMBERS, tmp_path / "ours.parquet")
        assert (examples.inputs.tolist(), examples.labels.tolist()) == ([[3, 1], [4, 2]], [2, 0])

    def test_float64_arrays(self, tmp_path):
        assert read(NUMBERS, npz_file(tmp_path, x=np.ones((3, 2)), y=LABELS[:3])).inputs.dtype == torch.float32

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("age,label\n1,0\n", "no column 'dose', which is an input"),
            ("age,dose,label\n1,2,0\n1,nan,0\n", "column 'dose', row 1 (line 3): the cell is empty"),
            ("age,dose,label\n1,2,0\n1,inf,0\n", "column 'dose', row 1 (line 3): inf is infinite"),
            ("age,dose,label\n1,2,0\n1,,0\n", "column 'dose', row 1 (line 3): the cell is empty"),
            ("age,dose,label\n1,2,0\n1,much,0\n", "column 'dose', row 1 (line 3): 'much' is not a number"),
            ("age,dose,label\n1,2,0\n1,2,\n", "row 1 (line 3): the label is missing"),
            ("age,dose,label\n1,2,benign\n1,2,\n", "row 1 (line 3): the label is missing"),
            ("age,dose,label\n1,2,0\n1,2,7\n", "row 1: label 7 is out of range; 3 classes are 0..2"),
            ("age,dose,label\n", "is empty"),
            ("", "cannot be read as CSV"),
            ("age,dose\n1,2\n", "has no column label or"),
            ("age,dose,label\n1,2\n", "cannot be read as CSV"),
        ],
    )
    def test_what_does_not_fit(self, tmp_path, text, reason):
        sentence = refused(NUMBERS, csv_file(tmp_path, text))
        assert reason in sentence
        assert "ours.csv" in sentence

    def test_nan_in_arrays_is_found_before_training(self, tmp_path):
        inputs = np.ones((5000, 2), np.float32)
        inputs[4321, 1] = np.nan
        sentence = refused(NUMBERS, npz_file(tmp_path, x=inputs, y=np.zeros(5000, int)))
        assert "ours.npz, row 4321: an input is NaN or infinite" in sentence


ENCODING = Encoding(
    columns=(
        Column(name="age", fill=50.0),
        Column(name="sex", kind="category", categories=("f", "m", "x")),
        Column(name="smoker", kind="truth", fill=0.0),
    ),
    fills=True,
    empty_values=("?",),
)
ENCODED = OwnData(
    dataset(torch.zeros(6, 5), columns=Columns(ENCODING.names, ("label",), ENCODING)),
    DataSettings(name="csv", path="theirs.csv", empty_cells="fill", empty_values=("?",)),
)


class TestEncodedTables:
    """Categories and fillings are the experiment's, whatever a party's own table holds."""

    def test_a_party_that_lacks_a_category(self, tmp_path):
        path = csv_file(tmp_path, "sex,label,age,smoker\nm,none,40,true\nm,benign,50,false\n")
        assert read(ENCODED, path).inputs.tolist() == [[40, 0, 1, 0, 1], [50, 0, 1, 0, 0]]

    def test_gaps_are_filled_with_what_the_experiment_knows(self, tmp_path):
        path = csv_file(tmp_path, "sex,label,age,smoker\n?,none,NA,\nm,benign,90,true\nf,none,91,true\n")
        assert read(ENCODED, path).inputs[0].tolist() == [50, 0, 0, 0, 0], "and not with the median of the party"

    def test_a_spreadsheet_of_its_own_country(self, tmp_path):
        text = "sex;label;age;smoker\nm;none;40,5;true\nf;benign;k.A.;false\n"
        (tmp_path / "ours.csv").write_bytes(text.encode("utf-16"))
        (tmp_path / "ours.yaml").write_text("{name: csv, path: ours.csv, empty_values: [k.A.]}")
        assert read(ENCODED, tmp_path / "ours.yaml").inputs[:, 0].tolist() == [40.5, 50]

    def test_json_lines(self, tmp_path):
        one = '{"age": 1, "sex": "x", "smoker": true, "label": "none"}'
        other = '{"age": 2, "sex": "f", "smoker": null, "label": "benign"}'
        (tmp_path / "ours.jsonl").write_text(f"{one}\n{other}\n")
        assert read(ENCODED, tmp_path / "ours.jsonl").inputs.tolist() == [[1, 0, 0, 1, 1], [2, 1, 0, 0, 0]]

    def test_numbers_that_are_true_or_false(self, tmp_path):
        path = csv_file(tmp_path, "sex,label,age,smoker\nm,none,40,1\nm,benign,50,0\n")
        assert read(ENCODED, path).inputs[:, 4].tolist() == [1, 0]

    @pytest.mark.parametrize(
        ("row", "reason"),
        [
            ("d,none,40,true", "column 'sex', row 0 (line 2): unknown category 'd' (known: f, m, x)"),
            ("f,none,old,true", "column 'age', row 0 (line 2): 'old' is not a number"),
            ("f,none,40,ja", "column 'smoker', row 0 (line 2): 'ja' is neither true nor false"),
            ("f,none,40,2", "column 'smoker', row 0 (line 2): 2 is neither true nor false, nor 1 nor 0"),
            ("f,cyst,40,true", "unknown class 'cyst'"),
        ],
    )
    def test_what_does_not_fit(self, tmp_path, row, reason):
        assert reason in refused(ENCODED, csv_file(tmp_path, f"sex,label,age,smoker\n{row}\n"))

    def test_a_missing_column(self, tmp_path):
        sentence = refused(ENCODED, csv_file(tmp_path, "sx,label,age,smoker\nm,none,40,true\n"))
        assert "ours.csv has no column 'sex', which is an input (did you mean 'sx'?)" in sentence

    def test_an_experiment_without_gaps_refuses_them(self, tmp_path):
        columns = Columns(ENCODING.names, (), ENCODING.model_copy(update={"fills": False}))
        strict = OwnData(dataset(torch.zeros(6, 5), columns=columns), DataSettings(name="csv", path="theirs.csv"))
        sentence = refused(strict, csv_file(tmp_path, "sex,label,age,smoker\nm,none,,true\n"))
        assert "column 'age', row 0 (line 2): the cell is empty" in sentence

    def test_truth_values_as_labels(self, tmp_path):
        columns = Columns(("age", "dose"), ())
        theirs = dataset(torch.zeros(6, 2), ("False", "True"), columns=columns, label_kind="truth values")
        own = OwnData(theirs, DataSettings(name="csv", path="theirs.csv"))
        assert read(own, csv_file(tmp_path, "age,dose,label\n1,2,true\n3,4,false\n")).labels.tolist() == [1, 0]


def test_texts_get_the_experiments_tokens(tmp_path):
    examples = read(TEXTS, csv_file(tmp_path, "text,label\na b c,none\nb,benign\n"))
    assert torch.equal(examples.inputs, torch.from_numpy(TEXTS.dataset.tokenizer(["a b c", "b"])))
    assert examples.labels.tolist() == [2, 0]


def test_texts_where_numbers_are_needed(tmp_path):
    assert "images or numbers are needed" in refused(IMAGES, npz_file(tmp_path, x=np.array(["a", "b"]), y=LABELS[:2]))


class TestDescribed:
    """A YAML file that says more."""

    def described(self, folder, text: str, table: str):
        csv_file(folder, table, "visits.csv")
        (folder / "ours.yaml").write_text(text)
        return folder / "ours.yaml"

    def test_columns_and_labels_of_other_names(self, tmp_path):
        text = "name: csv\npath: visits.csv\nlabel_column: finding\nignore_columns: [ward]\n"
        text += "labels: {B: benign, M: 1, '?': none}\n"
        path = self.described(tmp_path, text, "age,finding,dose,ward,bed\n1,M,2,x,1\n3,B,4,y,2\n5,?,6,z,3\n")
        examples = read(NUMBERS, path)
        assert (examples.inputs.tolist(), examples.labels.tolist()) == ([[1, 2], [3, 4], [5, 6]], [1, 0, 2])

    def test_numbers_that_mean_other_numbers(self, tmp_path):
        path = self.described(
            tmp_path, "{name: csv, path: visits.csv, labels: {1: 0, 2: 1}}", "age,dose,label\n1,2,2\n3,4,1\n"
        )
        assert read(NUMBERS, path).labels.tolist() == [1, 0]

    def test_words_that_yaml_takes_for_truth_values(self, tmp_path):
        text = "{name: csv, path: visits.csv, labels: {yes: 1, no: 0}}"
        path = self.described(tmp_path, text, "age,dose,label\n1,2,yes\n3,4,no\n")
        assert read(NUMBERS, path).labels.tolist() == [1, 0]

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("{name: csv, path: visits.csv, labls: {}}", "unknown key 'labls' (did you mean 'labels'?)"),
            ("{name: excel, path: visits.csv}", "name"),
            ("{name: csv}", "path"),
            ("{name: csv, path: visits.csv, labels: {B: cyst}}", "'B' stands for unknown class 'cyst'"),
            ("{name: csv, path: visits.csv, labels: {B: 3}}", "'B' stands for unknown class '3'"),
            ("[1, 2]", "mapping"),
            ("{name: csv", "is not YAML"),
        ],
    )
    def test_mistakes(self, tmp_path, text, reason):
        assert reason in refused(NUMBERS, self.described(tmp_path, text, "age,dose,label\n1,2,0\n"), ConfigError)


@pytest.mark.parametrize("name", ["ours.xlsx", "ours", "ours.npy"])
def test_other_formats_are_for_a_loader(tmp_path, name):
    (tmp_path / name).touch()
    assert "give --loader module:function" in refused(IMAGES, tmp_path / name, ConfigError)


class TestLoader:
    @pytest.fixture(autouse=True)
    def _here(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

    def load(self, name: str, code: str) -> Examples | None:
        Path(f"{name}.py").write_text(f"def load():\n    {code}\n")
        return NUMBERS.of_node({"loader": f"{name}:load"})

    def test_a_function_on_the_partys_machine(self):
        examples = self.load("ours_fine", "return [[1, 2], [3, 4]], ['none', 'benign']")
        assert (examples.inputs.tolist(), examples.labels.tolist()) == ([[1, 2], [3, 4]], [2, 0])

    def test_one_that_fails(self):
        with pytest.raises(DataError, match="ours_bad:load raised KeyError: 'x'"):
            self.load("ours_bad", "return {}['x']")

    def test_one_that_is_not_there(self):
        with pytest.raises(ConfigError, match="loader: nobodys cannot be imported"):
            NUMBERS.of_node({"loader": "nobodys:load"})

    def test_wrong_names(self):
        with pytest.raises(ConfigError, match="must be module:function"):
            NUMBERS.of_node({"loader": "ours"})
        with pytest.raises(ConfigError, match="keep one of them"):
            NUMBERS.of_node({"loader": "ours:load", "data": "ours.csv"})


class TestArrays:
    """What the app's own load_data gives goes the same way."""

    def test_lists_and_tensors(self):
        examples = NUMBERS.of_arrays([[1, 2]], torch.tensor([2]), "load_data")
        assert (examples.inputs.tolist(), examples.labels.tolist()) == ([[1, 2]], [2])

    @pytest.mark.parametrize(
        ("inputs", "labels", "reason"),
        [
            (
                np.ones((3, 5), np.float32),
                [0, 1, 2],
                "inputs of shape 5 (float32); the experiment's have shape 2 (float32)",
            ),
            (np.ones((3, 2)), [0, 1], "do not fit 2 labels"),
            (np.ones((3, 2)), [0.5, 1, 2], "the labels are float64"),
            (np.ones((0, 2)), np.zeros(0, int), "is empty"),
            (np.ones((3, 2)), [0, 1, 3], "load_data, row 2: label 3 is out of range; 3 classes are 0..2"),
            (np.array([[None]]), [0], "is an array of object"),
        ],
    )
    def test_what_does_not_fit(self, inputs, labels, reason):
        with pytest.raises(DataError) as caught:
            NUMBERS.of_arrays(inputs, labels, "load_data")
        assert reason in str(caught.value)
