"""A saved model is asked about raw inputs as people have them, and is as good as its run says."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

import fedfuse
from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.data import load, split
from fedfuse.experiment.run import Experiment, RunResult
from tests.experiment.test_text_run import config as text_config
from tests.experiment.test_text_run import sentences
from tests.helpers import tiny_method

COLUMNS = ("age", "income", "height", "visits")
CLASSES = ("sick", "healthy", "unsure")
QUICK = {
    "partition": {"kind": "dirichlet", "clients": 3, "alpha": 1.0, "min_examples": 5},
    "training": {"epochs": 3, "batch_size": 16},
    "federation": {"rounds": 2},
    "compute": {"device": "cpu"},
    "method": "fedavg",
}


def digits(folder: Path, **sections) -> RunResult:
    raw = {"data": {"name": "digits"}, "models": {"m": {"arch": "mlp", "hidden": [32]}}, **QUICK, **sections}
    return Experiment(raw).run(folder)


def digits_test(result: RunResult, size: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """The run's test images and labels."""
    config = Experiment.load(result.folder.path).config
    key = Key(config.seed)
    test = split(load(config.data, key.child("load")), config.data, key.child("split")).test
    assert test.inputs.shape[1:] == (1, size, size)
    return test.inputs.numpy(), test.labels.numpy()


def people(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of very different size; the class follows from them after standardising."""
    random = np.random.default_rng(seed)
    scores = random.standard_normal((count, 4))
    rows = scores * [15, 20_000, 0.1, 3] + [50, 60_000, 1.75, 10]
    return rows, scores[:, :3].argmax(axis=1)


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    for part, count, seed in (("train", 600, 0), ("test", 200, 1)):
        rows, labels = people(count, seed)
        number = range(count)
        columns = dict(zip(COLUMNS, rows.T, strict=True))
        table = pa.table({"id": number, "income": columns.pop("income"), "label": labels, **columns})
        pacsv.write_csv(table, folder / f"{part}.csv")
        names = {"info": {"features": {"label": {"names": list(CLASSES), "_type": "ClassLabel"}}}}
        pq.write_table(table.replace_schema_metadata({"huggingface": json.dumps(names)}), folder / f"{part}.parquet")
    return folder


def table_run(tables: Path, folder: Path, kind: str = "csv") -> RunResult:
    data = {
        "name": kind,
        "path": str(tables / f"train.{kind}"),
        "test_path": str(tables / f"test.{kind}"),
        "ignore_columns": ["id"],
    }
    training = {"epochs": 5, "batch_size": 16, "optimizer": {"kind": "adam", "learning_rate": 0.01}}
    models = {"m": {"arch": "mlp", "hidden": [16]}}
    return Experiment({**QUICK, "data": data, "models": models, "training": training}).run(folder)


@pytest.fixture(scope="module", autouse=True)
def _no_pictures():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedfuse.experiment.run.draw_run", lambda *_args, **_options: None)
        yield


@pytest.fixture(scope="module")
def table_model(tables, tmp_path_factory):
    return table_run(tables, tmp_path_factory.mktemp("run") / "run").model()


@pytest.fixture(scope="module")
def digits_run(tmp_path_factory):
    return digits(tmp_path_factory.mktemp("digits") / "run")


@pytest.fixture(scope="module")
def gray_model(tmp_path_factory):
    """Of a file that says nothing of sizes and colours, so that they must be right."""
    folder = tmp_path_factory.mktemp("gray")
    pixels = np.random.default_rng(1).integers(0, 256, (100, 8, 8), dtype=np.uint8)
    np.savez(folder / "d.npz", x=pixels, y=np.arange(100) % 10)
    return digits(folder / "run", data={"name": "npz", "path": str(folder / "d.npz")}).model()


def accuracy(found: np.ndarray, labels: np.ndarray) -> float:
    return float((found == labels).mean())


ARCHITECTURES = {
    "mlp": {"arch": "mlp", "hidden": [32]},
    "cnn": {"arch": "cnn2"},
    "batch norm": {"arch": "resnet8", "width": 4},
    "group norm": {"arch": "resnet8", "width": 4, "norm": "group", "groups": 2},
    "head": {"arch": "mlp", "hidden": [16], "projection_head": 5},
}


class TestAccuracy:
    """On raw test inputs it is the accuracy that the run reports."""

    @pytest.mark.parametrize("name", list(ARCHITECTURES))
    def test_of_digits(self, tmp_path, name):
        result = digits(tmp_path / "run", models={"m": ARCHITECTURES[name]})
        images, labels = digits_test(result)
        assert accuracy(result.model().predict(images), labels) == result.accuracy["m"]

    @pytest.mark.parametrize("normalisation", ["none", "half"])
    def test_of_digits_normalised_otherwise(self, tmp_path, normalisation):
        result = digits(tmp_path / "run", data={"name": "digits", "normalisation": normalisation})
        images, labels = digits_test(result)
        assert accuracy(result.model().predict(images), labels) == result.accuracy["m"]

    def test_of_images_that_were_resized_and_coloured(self, tmp_path):
        """The model takes them as they were before, and does with them what the experiment did."""
        from sklearn.datasets import load_digits

        bunch = load_digits()
        raw = np.rint(bunch.images * (255 / 16)).astype(np.uint8)
        result = digits(tmp_path / "run", data={"name": "digits", "resize": 12, "channels": 3})
        model = result.model()
        prepared = model.predict_proba(load(Experiment.load(result.folder.path).config.data, Key(0)).train.inputs)
        np.testing.assert_array_equal(model.predict_proba(raw[:, None]), prepared)
        np.testing.assert_array_equal(model.predict_proba(raw[:, :, :, None]), prepared)
        few = [Image.fromarray(image) for image in raw[:5]]
        np.testing.assert_allclose(model.predict_proba(few), prepared[:5], atol=1e-6)

    def test_of_a_csv_by_name_and_by_place(self, tables, tmp_path):
        result = table_run(tables, tmp_path / "run")
        model = result.model()
        with (tables / "test.csv").open() as file:
            rows = list(csv.DictReader(file))
        labels = np.array([int(row["label"]) for row in rows])
        table = np.array([[float(row[name]) for name in ("income", "age", "height", "visits")] for row in rows])
        assert result.accuracy["m"] > 0.8
        assert accuracy(model.predict(table), labels) == result.accuracy["m"]
        pandas = pytest.importorskip("pandas")
        frame = pandas.read_csv(tables / "test.csv")
        assert accuracy(model.predict(frame), labels) == result.accuracy["m"]
        backwards = frame[["visits", "height", "income", "age"]]
        np.testing.assert_array_equal(model.predict_proba(backwards), model.predict_proba(table))

    def test_of_a_table_with_names_of_classes(self, tables, tmp_path):
        result = table_run(tables, tmp_path / "run", "parquet")
        rows, labels = people(200, 1)
        found = result.model().predict(rows[:, [1, 0, 2, 3]])
        assert accuracy(found, np.array(CLASSES)[labels]) == result.accuracy["m"]

    @pytest.mark.parametrize("arch", ["text_cnn", "text_transformer"])
    def test_of_texts(self, tmp_path, arch):
        for part, count in (("train", 180), ("test", 50)):
            texts, labels = sentences(count, count)
            pq.write_table(pa.table({"text": texts, "label": labels}), tmp_path / f"{part}.parquet")
        result = Experiment(text_config(tmp_path, "fedavg", arch)).run(tmp_path / "run")
        texts, labels = sentences(50, 50)
        assert result.accuracy["text"] > 0.9
        assert accuracy(result.model().predict(texts), np.array(labels)) == result.accuracy["text"]

    def test_where_batch_norm_goes_by_the_batch(self, tmp_path):
        """Asked about the test examples at once, as the run asked."""
        federation = {"rounds": 2, "batch_norm": "batch"}
        result = digits(tmp_path / "run", models={"m": ARCHITECTURES["batch norm"]}, federation=federation)
        images, labels = digits_test(result)
        model = result.model()
        assert abs(accuracy(model.predict(images), labels) - result.accuracy["m"]) < 0.01
        shuffled = np.random.default_rng(0).permutation(len(images))
        np.testing.assert_allclose(
            model.predict_proba(images[shuffled]), model.predict_proba(images)[shuffled], atol=1e-5
        )
        with pytest.raises(DataError, match=r"batch_norm: batch\), so it must be asked about two inputs at least"):
            model.predict(images[0])
        without = digits(tmp_path / "mlp", federation=federation).model()
        assert without.predict(images[0]).shape == (1,), "a network without BatchNorm does not care"


class TestAnswers:
    def test_probabilities_are_what_the_network_gives_on_inputs_that_were_normalised_by_hand(self, digits_run):
        model = digits_run.model()
        images, _ = digits_test(digits_run)
        seen = (images / 255 - 0.30527) / 0.37594  # docs/data.md has the constants
        expected = torch.softmax(model(torch.from_numpy(seen).float()), dim=1).detach().numpy()
        found = model.predict_proba(images)
        np.testing.assert_allclose(found, expected, atol=1e-3)
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
        assert found.dtype == np.float32

    def test_an_answer_depends_on_its_input_alone(self, tmp_path):
        model = digits(tmp_path / "run", models={"m": ARCHITECTURES["batch norm"]}).model()
        images = np.random.default_rng(0).integers(0, 256, (600, 1, 8, 8), dtype=np.uint8)
        together = model.predict_proba(images)
        for few in ([0], [599, 3], range(100, 140)):
            np.testing.assert_allclose(model.predict_proba(images[list(few)]), together[list(few)], atol=1e-6)

    def test_a_network_in_training_mode_answers_the_same_and_stays_so(self, tmp_path):
        model = digits(tmp_path / "run", models={"m": ARCHITECTURES["batch norm"]}).model()
        images = np.zeros((3, 8, 8), np.uint8)
        expected = model.predict_proba(images)
        model.train()
        np.testing.assert_array_equal(model.predict_proba(images), expected)
        assert model.training

    def test_no_inputs_have_no_answers(self, digits_run):
        assert digits_run.model().predict_proba(np.empty((0, 8, 8), np.uint8)).shape == (0, 10)

    def test_classes_without_names_are_numbers(self, digits_run, tables, tmp_path):
        model = digits_run.model()
        assert model.classes_.tolist() == list(range(10))
        assert model.predict(np.zeros((8, 8), np.uint8)).dtype.kind == "i"
        named = table_run(tables, tmp_path / "run", "parquet").model()
        assert named.classes_.tolist() == list(CLASSES)

    def test_the_repr_says_what_it_reads(self, digits_run, table_model):
        assert "reads uint8 images 1x8x8; 10 classes: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9\n" in repr(digits_run.model())
        assert "reads the columns income, age, height, visits; 3 classes: 0, 1, 2\n" in repr(table_model)


def test_a_fresh_process_needs_neither_the_data_nor_the_run(tables, tmp_path):
    model = table_run(tables, tmp_path / "run")
    alone = tmp_path / "elsewhere"
    alone.mkdir()
    (tmp_path / "run" / "final" / "m.safetensors").rename(alone / "model.safetensors")
    rows, _ = people(20, 7)
    expected = fedfuse.load_model(alone / "model.safetensors").predict(rows[:, [1, 0, 2, 3]]).tolist()
    np.save(alone / "rows.npy", rows[:, [1, 0, 2, 3]])
    code = (
        "import numpy, fedfuse; print(fedfuse.load_model('model.safetensors').predict(numpy.load('rows.npy')).tolist())"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(fedfuse.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=alone, capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(expected)
    assert model.accuracy["m"] > 0.8


def test_clients_own_models_answer_too(tmp_path):
    result = digits(tmp_path / "run", method=tiny_method("local-only"))
    images, _ = digits_test(result)
    assert result.client_model(0).predict(images).shape == (len(images),)


def image_path(folder: Path, pixels: np.ndarray, name: str = "a.png") -> Path:
    Image.fromarray(pixels).save(folder / name)
    return folder / name


class TestImages:
    def test_every_way_to_hand_over_the_same_images(self, gray_model, tmp_path):
        gray = np.random.default_rng(0).integers(0, 256, (3, 8, 8), dtype=np.uint8)
        expected = gray_model.predict_proba(gray)
        paths = [image_path(tmp_path, image, f"{place}.png") for place, image in enumerate(gray)]
        ways = {
            "channels first": gray[:, None],
            "channels last": gray[:, :, :, None],
            "a tensor": torch.from_numpy(gray),
            "a list of arrays": list(gray),
            "paths": paths,
            "words": [str(path) for path in paths],
            "bytes": [path.read_bytes() for path in paths],
            "Pillow": [Image.fromarray(image) for image in gray],
            "mixed": [paths[0], str(paths[1]), Image.fromarray(gray[2])],
        }
        for name, way in ways.items():
            np.testing.assert_array_equal(gray_model.predict_proba(way), expected, err_msg=name)

    def test_every_way_to_hand_over_one_image(self, gray_model, tmp_path):
        gray = np.random.default_rng(0).integers(0, 256, (8, 8), dtype=np.uint8)
        path = image_path(tmp_path, gray)
        expected = gray_model.predict_proba(gray)
        assert expected.shape == (1, 10)
        for way in (gray[None], gray[:, :, None], gray[None, None], path, str(path), Image.fromarray(gray)):
            np.testing.assert_array_equal(gray_model.predict_proba(way), expected)

    def test_a_dataset_of_the_catalogue_knows_its_colours(self, digits_run):
        gray = np.random.default_rng(0).integers(0, 256, (8, 8), dtype=np.uint8)
        coloured = np.repeat(gray[:, :, None], 3, axis=2)
        model = digits_run.model()
        np.testing.assert_array_equal(model.predict_proba(Image.fromarray(coloured)), model.predict_proba(gray))

    @pytest.mark.parametrize(
        ("raw", "sentence"),
        [
            (
                np.zeros((2, 8, 8)),
                "images must be uint8 from 0 to 255, and these are float64; turn numbers from 0 to 1",
            ),
            (torch.zeros(2, 1, 8, 8), "and these are float32"),
            (np.zeros((2, 8, 8), np.int64), "and these are int64"),
            (np.zeros((2, 9, 8), np.uint8), "an array of shape 2x9x8 holds no images of 1x8x8; give N x C x H x W"),
            (np.zeros((2, 3, 8, 8), np.uint8), "an array of shape 2x3x8x8 holds no images"),
            (np.zeros(64, np.uint8), "an array of shape 64 holds no images"),
            ([np.zeros((8, 8), np.uint8), np.zeros((9, 8), np.uint8)], "the inputs differ in shape"),
            (Image.new("RGB", (8, 8)), r"image 0 is 3x8x8, but the model reads 1x8x8 \(channels, height, width\)"),
            ([Image.new("L", (8, 8)), Image.new("L", (9, 8))], "image 1 is 1x8x9, but"),
            ("no/such.png", "no/such.png does not exist"),
            (b"no image", "image 0 cannot be read as an image"),
        ],
    )
    def test_what_is_no_image_of_this_size_is_refused(self, gray_model, raw, sentence):
        with pytest.raises(DataError, match=sentence) as refusal:
            gray_model.predict(raw)
        assert "\n" not in str(refusal.value)


class TestNumbers:
    @pytest.mark.parametrize(
        ("raw", "sentence"),
        [
            (np.zeros((2, 5)), "an array of shape 2x5 holds no inputs of 4; give N x 4"),
            (np.zeros((2, 4), bool), "the inputs are bool; they must be numbers"),
            ([[1, 2, 3, 4], [1, 2, 3, float("nan")]], "the inputs, row 1: an input is NaN or infinite"),
            ([["a", "b", "c", "d"]], "they must be numbers"),
            ([[1, 2, 3, 4], [1, 2]], "the inputs differ in shape"),
        ],
    )
    def test_what_are_no_rows_is_refused(self, table_model, raw, sentence):
        with pytest.raises(DataError, match=sentence):
            table_model.predict(raw)

    def test_one_row_is_enough(self, table_model):
        np.testing.assert_array_equal(
            table_model.predict_proba([1, 2, 3, 4]), table_model.predict_proba([[1, 2, 3, 4]])
        )

    def test_columns_go_by_their_names(self, table_model):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(
            [[1.0, 2.0, 3.0, 4.0, 0, 7]], columns=["income", "age", "height", "visits", "label", "id"]
        )
        expected = table_model.predict_proba([[1, 2, 3, 4]])
        np.testing.assert_array_equal(table_model.predict_proba(frame), expected)
        np.testing.assert_array_equal(table_model.predict_proba(frame[list(reversed(frame.columns))]), expected)
        with pytest.raises(DataError, match="the table has no column 'age', 'visits'; the model reads income, age"):
            table_model.predict(frame.drop(columns=["age", "visits"]))
        with pytest.raises(DataError, match="the model has never seen column 'weight'; leave out"):
            table_model.predict(frame.assign(weight=1))
        with pytest.raises(DataError, match="the inputs, column 'age', row 0: 'old' is not a number"):
            table_model.predict(frame.assign(age="old"))

    def test_without_names_a_frame_is_refused(self, tmp_path):
        pandas = pytest.importorskip("pandas")
        models = {"m": {"arch": "mlp", "hidden": [4]}}
        model = Experiment({**QUICK, "data": {"name": "blobs"}, "models": models}).run(tmp_path / "run").model()
        with pytest.raises(DataError, match="does not know its columns by name; give an array"):
            model.predict(pandas.DataFrame([[1.0, 2.0]]))

    def test_pictures_of_floats_are_not_taken_for_bytes(self, tmp_path):
        random = np.random.default_rng(0)
        np.savez(tmp_path / "d.npz", x=random.random((90, 1, 4, 4), np.float32), y=np.arange(90) % 3)
        models = {"m": {"arch": "mlp", "hidden": [4]}}
        data = {"name": "npz", "path": str(tmp_path / "d.npz")}
        model = Experiment({**QUICK, "data": data, "models": models}).run(tmp_path / "run").model()
        assert model.predict(random.random((5, 1, 4, 4))).shape == (5,)
        with pytest.raises(DataError, match="trained on floating-point images, and these are uint8"):
            model.predict(np.zeros((5, 1, 4, 4), np.uint8))


def test_texts_are_strings(tmp_path):
    for part, count in (("train", 180), ("test", 50)):
        texts, labels = sentences(count, count)
        pq.write_table(pa.table({"text": texts, "label": labels}), tmp_path / f"{part}.parquet")
    settings = text_config(tmp_path, "fedavg", "text_cnn", training={"epochs": 1, "batch_size": 32})
    model = Experiment(settings).run(tmp_path / "run").model()
    assert "reads texts of up to 16 tokens (words)" in repr(model)
    one = model.predict_proba("the market was new")
    together = model.predict_proba(("a much longer sentence about a planet and nothing more", "the market was new", ""))
    np.testing.assert_allclose(together[1:2], one, atol=1e-6)
    with pytest.raises(DataError, match=r"input 1 is of type float; the model reads texts \(str\)"):
        model.predict(["market", 1.0])
