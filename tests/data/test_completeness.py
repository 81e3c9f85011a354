"""A part of a dataset is never taken for the whole."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedfuse.catalogue.completeness import count_examples, what_is_missing
from fedfuse.catalogue.places import at_hand, missing_at_hand
from fedfuse.core.randomness import Key
from fedfuse.data import CATALOGUE, DataSettings, load
from fedfuse.experiment.assembly import build, cautions
from fedfuse.experiment.config import validate
from fedfuse.federation.events import EventLog

from .samples import WriteParquet, encode, random_images

WHOLE = {"training": 50_000, "test": 10_000}
DIGITS = [str(digit) for digit in range(10)]


@pytest.fixture
def folder(write_parquet: WriteParquet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twenty training and ten test images that are called MNIST."""
    encoded = encode(random_images(30, side=28, channels=1))
    write_parquet(encoded[:20], list(range(10)) * 2, DIGITS, "data/mnist-train.parquet")
    write_parquet(encoded[20:], list(range(10)), DIGITS, "data/mnist-test.parquet")
    monkeypatch.setenv("FEDFUSE_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("name", "counts", "sentence"),
    [
        ("cifar100", WHOLE, None),
        (
            "cifar100",
            {"training": 10_000, "test": 10_000},
            "CIFAR-100 has 50,000 training and 10,000 test examples, but 10,000 training and 10,000 test ex",
        ),
        (
            "tiny_imagenet",
            {"training": 10_000},
            "has 100,000 training and 10,000 test examples, but 10,000 examples without a test split lie in f",
        ),
        ("mnist", {"training": 60_000, "test": 10_001}, "10,001 test examples lie in f"),
        ("sst5", {"training": 8_544, "test": 2_210}, None),
        ("sst5", {"training": 8_544, "test": 2_210, "validation": 1_101}, None),
        ("sst5", {"training": 8_544, "test": 2_210, "validation": 1_100}, "2,210 test and 1,100 validation examples"),
        ("omniglot", {"training": 1}, None),
        ("digits", {"training": 1}, None),
    ],
)
def test_what_is_missing_is_one_sentence(name, counts, sentence):
    found = what_is_missing(CATALOGUE[name], counts, "f")
    assert found is None if sentence is None else sentence in found


def test_a_dataset_knows_that_it_is_a_part_whatever_limits_keep_of_it(folder):
    sentence = "MNIST has 60,000 training and 10,000 test examples, but 20 training and 10 test examples lie in"
    for limit in (None, 12):
        dataset = load(DataSettings(name="mnist", train_limit=limit), Key(0))
        assert dataset.incomplete == f"{sentence} mnist-train.parquet, mnist-test.parquet"
    assert load(DataSettings(name="parquet", path=str(folder)), Key(0)).incomplete is None
    assert load(DataSettings(name="digits"), Key(0)).incomplete is None


@pytest.mark.usefixtures("folder")
def test_a_run_says_so_of_its_data_and_of_its_source():
    experiment = {
        "data": {"name": "mnist", "validation": 0},
        "partition": {"kind": "iid", "clients": 2},
        "models": {"net": {"arch": "cnn1"}},
        "method": "feddf",
        "source": {"kind": "dataset", "data": {"name": "mnist"}},
    }
    facts = build(validate(experiment), EventLog()).facts
    assert "20 training and 10 test examples" in facts["data"]["incomplete"]
    assert facts["source"]["incomplete"] == facts["data"]["incomplete"]
    said = cautions(json.loads(json.dumps(facts)))
    assert said == [f"{facts['data']['incomplete']}; do not compare results with published ones"] * 2
    whole = {**experiment, "data": {"name": "digits", "resize": 28, "validation": 0}, "method": "fedavg"}
    assert cautions(build(validate(whole), EventLog()).facts) == []


def test_what_is_at_hand_is_counted_without_decoding_it(folder, monkeypatch):
    monkeypatch.setattr("fedfuse.data.lookup.read_format", lambda *_: pytest.fail("decoded"))
    assert "20 training and 10 test" in missing_at_hand(CATALOGUE["mnist"])
    assert [at_hand(CATALOGUE[name]) for name in ("mnist", "cifar10", "digits")] == ["part", "no", "yes"]
    (folder / "mnist-test.parquet").unlink()
    assert at_hand(CATALOGUE["mnist"]) == "part"


def test_counting(tmp_path):
    pq.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a": 2}\n\n')
    np.zeros(2 * 3073, np.uint8).tofile(tmp_path / "c10.bin")
    np.zeros(3 * 3074, np.uint8).tofile(tmp_path / "c100.bin")
    np.zeros(27648, np.uint8).tofile(tmp_path / "stl.bin")
    assert count_examples("parquet", [tmp_path / "a.parquet"] * 2) == 6
    assert count_examples("jsonl", [tmp_path / "a.jsonl"]) == 2
    assert count_examples("cifar10", [tmp_path / "c10.bin"]) == 2
    assert count_examples("cifar100", [tmp_path / "c100.bin"]) == 3
    assert count_examples("stl10", [tmp_path / "stl.bin"]) == 1
    assert count_examples("svhn", [tmp_path / "stl.bin"]) is None


def test_a_damaged_file_does_not_spoil_the_list(folder):
    (folder / "mnist-train.parquet").write_bytes(b"PAR1 cut off")
    assert missing_at_hand(CATALOGUE["mnist"]) is None
    assert at_hand(CATALOGUE["mnist"]) == "yes"
