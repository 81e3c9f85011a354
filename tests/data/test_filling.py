"""Empty cells: refused unless asked for, and then filled from training examples alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.data import DataSettings, load, split
from fedfuse.data.given import data_section
from fedfuse.data.splits import training_rows

GAPS = "age,smoker,sex,label\n10,true,f,0\n,true,,1\n30,,m,0\n50,false,f,1\n"


def read(path: Path, text: str, split_key: Key | None = None, **settings: Any) -> Any:
    path.write_text(text)
    section = {"name": "csv", "path": path, "empty_cells": "fill", **settings}
    return load(DataSettings.model_validate(section), Key(0), split_key=split_key)


def test_numbers_truth_values_and_categories(tmp_path):
    data = read(tmp_path / "d.csv", GAPS)
    assert data.train.inputs.tolist() == [[10, 1, 1, 0], [30, 1, 0, 0], [30, 1, 0, 1], [50, 0, 1, 0]]
    assert data.notes[-3:] == (
        "age: 1 empty cell filled with 30, the median of the training examples",
        "smoker: 1 empty cell filled with true, the more frequent one of the training examples",
        "sex: 1 empty cell as 0 in all its columns",
    )


def test_it_is_asked_for(tmp_path):
    with pytest.raises(DataError, match=r"column 'age', row 1 \(line 3\): the cell is empty; set data.empty_cells"):
        read(tmp_path / "d.csv", GAPS, empty_cells="refuse")


@pytest.mark.parametrize("gap", ["", "NA", "n/a", "nan", "NULL", "#N/A"])
def test_what_says_that_it_is_empty(tmp_path, gap):
    data = read(tmp_path / "d.csv", f"age,sex,label\n1,f,0\n{gap},m,1\n3,{gap},0\n")
    assert data.train.inputs.tolist() == [[1, 1, 0], [2, 0, 1], [3, 0, 0]]


def test_what_else_stands_for_nothing(tmp_path):
    text = "age,sex,label\n1,f,0\n?,m,1\n3,k.A.,0\n"
    data = read(tmp_path / "d.csv", text, empty_values=["?", "k.A."])
    assert data.train.inputs.tolist() == [[1, 1, 0], [2, 0, 1], [3, 0, 0]]
    with pytest.raises(DataError, match=r"column 'age', row 1 .* the cell is empty"):
        read(tmp_path / "d.csv", text, empty_values=["?", "k.A."], empty_cells="refuse")


def test_a_file_without_gaps_is_read_as_ever_and_knows_what_would_fill_one(tmp_path):
    text = "age,label\n1,0\n2,1\n9,0\n"
    plain, ready = read(tmp_path / "d.csv", text, empty_cells="refuse"), read(tmp_path / "d.csv", text)
    assert torch.equal(plain.train.inputs, ready.train.inputs)
    assert plain.normalisation == ready.normalisation
    assert plain.columns.encoding is None
    assert [column.fill for column in ready.columns.encoding.columns] == [2.0]


@pytest.mark.parametrize("seed", range(3))
def test_the_median_is_that_of_the_examples_that_are_no_test_examples(seed):
    random = np.random.default_rng(seed)
    ages = random.integers(0, 1000, 41).astype(float)
    ages[random.choice(41, 5, replace=False)] = np.nan
    table = pa.table({"age": ages, "label": np.arange(41) % 2})
    settings = DataSettings.model_validate({**data_section(table), "empty_cells": "fill", "test": 0.4})
    key = Key(seed)
    data = load(settings, Key(0), split_key=key)
    parts = split(data, settings, key)
    others = np.setdiff1d(np.arange(41), parts.indices.test)
    expected = float(np.nanmedian(ages[others]))
    assert data.columns.encoding.columns[0].fill == pytest.approx(expected)
    assert data.train.inputs[np.flatnonzero(np.isnan(ages)), 0].tolist() == pytest.approx([expected] * 5)
    assert not data.train.inputs.isnan().any()


def test_test_examples_have_no_part_in_it(tmp_path):
    """However wild the test examples are, whichever they are."""
    random = np.random.default_rng(1)
    ages = random.normal(size=50)
    ages[::7] = np.nan
    fills = []
    for factor in (1.0, 1e6):
        key, settings = Key(3), {"name": "csv", "path": tmp_path / "d.csv", "empty_cells": "fill"}
        rows = training_rows(50, False, DataSettings.model_validate(settings), key)
        wild = np.where(np.isin(np.arange(50), rows), ages, ages * factor)
        text = "age,label\n" + "".join(f"{'' if np.isnan(a) else a},{n % 2}\n" for n, a in enumerate(wild))
        data = read(tmp_path / "d.csv", text, key, normalisation="training")
        fills.append((data.columns.encoding, data.normalisation))
    assert fills[0] == fills[1]


def test_a_test_file_is_filled_with_what_training_examples_say(tmp_path):
    (tmp_path / "test.csv").write_text("sex,age,smoker,label\n,,,0\nm,7,false,1\n")
    data = read(tmp_path / "d.csv", GAPS, test_path=tmp_path / "test.csv")
    assert data.test.inputs.tolist() == [[30, 1, 0, 0], [7, 0, 0, 1]]


def test_only_the_examples_that_a_limit_keeps_count(tmp_path):
    text = "age,label\n" + "".join(f"{number},{number % 2}\n" for number in range(101))
    data = read(tmp_path / "d.csv", text, train_limit=7)
    assert data.columns.encoding.columns[0].fill == float(np.median(data.train.inputs))


def test_the_cache_keeps_the_gaps(tmp_path):
    """Or else the second reading would go by the seed of the first."""
    text = "age,label\n" + "".join(f"{number if number % 5 else ''},{number % 2}\n" for number in range(60))
    first, second, again = (read(tmp_path / "d.csv", text, Key(seed)) for seed in (0, 1, 0))
    assert first.columns == again.columns != second.columns
    assert torch.equal(first.train.inputs, again.train.inputs)
    assert not torch.equal(first.train.inputs, second.train.inputs)


def test_a_column_that_no_training_example_fills_in(tmp_path):
    settings = {"name": "csv", "path": tmp_path / "d.csv", "empty_cells": "fill"}
    rows = training_rows(10, False, DataSettings.model_validate(settings), Key(0))
    ages = ["" if row in rows else "5" for row in range(10)]
    text = "age,dose,label\n" + "".join(f"{age},{row},{row % 2}\n" for row, age in enumerate(ages))
    with pytest.raises(DataError, match="column 'age' is empty in every training example; leave it out"):
        read(tmp_path / "d.csv", text, Key(0))


class TestNormalisation:
    TEXT = "age,flag,sex,label\n" + "".join(
        f"{age},{str(age % 3 == 0).lower()},{'fmx'[age % 3]},{age % 2}\n" for age in range(40)
    )

    def constants(self, path, **settings):
        data = read(path / "d.csv", self.TEXT, Key(2), **settings)
        return data.normalisation.mean, data.normalisation.std

    def test_columns_of_0_and_1_stay_as_they_are(self, tmp_path):
        mean, std = self.constants(tmp_path, empty_cells="refuse")
        ages = np.arange(40.0)
        assert mean == pytest.approx((ages.mean(), 0, 0, 0, 0))
        assert std == pytest.approx((ages.std(), 1, 1, 1, 1))

    def test_measured_on_training_examples_alone(self, tmp_path):
        settings = DataSettings(name="csv", path=str(tmp_path / "d.csv"))
        rows = training_rows(40, False, settings, Key(2))
        mean, std = self.constants(tmp_path, normalisation="training")
        assert (mean[0], std[0]) == pytest.approx((rows.mean(), rows.std()))
        assert mean != self.constants(tmp_path)[0]

    def test_given_constants(self, tmp_path):
        from fedfuse.data import Transform

        one = {"normalisation": {"mean": [20], "std": [10]}}
        data = read(tmp_path / "d.csv", self.TEXT, **one)
        settings = DataSettings.model_validate({"name": "csv", "path": tmp_path / "d.csv", **one})
        seen = Transform.of(data, settings)(data.train.inputs)
        torch.testing.assert_close(seen, (data.train.inputs - 20) / 10)
        wrong = DataSettings.model_validate(
            {"name": "csv", "path": "d.csv", "normalisation": {"mean": [1, 2], "std": [1, 1]}}
        )
        with pytest.raises(Exception, match="constants for 2 channels or columns, but the inputs have 5"):
            Transform.of(data, wrong)

    @pytest.mark.parametrize(
        ("value", "reason"),
        [
            ({"mean": [1, 2], "std": [1]}, "2 means and 1 deviations"),
            ({"mean": [1], "std": [0]}, "greater than 0"),
            ({"mean": [float("nan")], "std": [1]}, "finite"),
            ({"average": [1]}, "unknown key 'average'"),
            ("minmax", "dataset"),
        ],
    )
    def test_what_are_no_constants(self, value, reason):
        with pytest.raises(ValueError, match=reason):
            DataSettings.model_validate({"name": "digits", "normalisation": value})
