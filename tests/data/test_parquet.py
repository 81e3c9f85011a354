from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedfuse.core.errors import DataError
from fedfuse.data.readers import Reading, read_parquet

from .samples import WriteParquet, encode, random_images


@pytest.mark.parametrize("channels", [1, 3])
def test_images_come_back_pixel_for_pixel_with_their_class_names(write_parquet: WriteParquet, channels: int) -> None:
    images = random_images(700, channels=channels)
    labels = np.arange(700) % 3
    contents = read_parquet([write_parquet(encode(images), labels.tolist())], Reading())
    np.testing.assert_array_equal(contents.inputs, images)
    np.testing.assert_array_equal(contents.labels, labels)
    assert contents.class_names == ("a", "b", "c")


def test_several_files_are_joined_in_order(write_parquet: WriteParquet) -> None:
    images = random_images(5)
    first = write_parquet(encode(images[:2]), [0, 1], file="one.parquet")
    second = write_parquet(encode(images[2:]), [2, 1, 0], file="two.parquet")
    contents = read_parquet([first, second], Reading())
    np.testing.assert_array_equal(contents.inputs, images)
    assert contents.labels.tolist() == [0, 1, 2, 1, 0]


def test_images_beside_the_table_are_found_by_their_path(tmp_path: Path) -> None:
    images = random_images(2)
    rows = []
    for number, data in enumerate(encode(images)):
        (tmp_path / f"{number}.png").write_bytes(data)
        rows.append({"bytes": None, "path": f"{number}.png"})
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    pq.write_table(pa.table({"image": pa.array(rows, kind), "label": [0, 1]}), tmp_path / "t.parquet")
    np.testing.assert_array_equal(read_parquet([tmp_path / "t.parquet"], Reading()).inputs, images)


def test_resize_averages_boxes_and_channels_convert(write_parquet: WriteParquet) -> None:
    images = random_images(3, side=8)
    path = write_parquet(encode(images), [0, 1, 2])
    resized = read_parquet([path], Reading(resize=4)).inputs
    boxes = images.reshape(3, 3, 4, 2, 4, 2).mean(axis=(3, 5))
    assert np.abs(resized - boxes).max() <= 1
    assert read_parquet([path], Reading(channels=1)).inputs.shape == (3, 1, 8, 8)


def test_ignored_columns_are_as_if_they_were_not_there(tmp_path: Path) -> None:
    table = pa.table({"id": [7, 8], "width": [1.0, 2.0], "label": [9, 9], "y": [0, 1]})
    pq.write_table(table, tmp_path / "d.parquet")
    contents = read_parquet([tmp_path / "d.parquet"], Reading(ignored=("id", "label")))
    np.testing.assert_array_equal(contents.inputs, np.array([[1], [2]], np.float32))
    assert contents.labels.tolist() == [0, 1]
    with pytest.raises(DataError, match=r"data.ignore_columns: d.parquet has no column 'idd'"):
        read_parquet([tmp_path / "d.parquet"], Reading(ignored=("idd",)))


def test_number_columns_and_list_columns_are_features(tmp_path: Path) -> None:
    table = pa.table({"width": [1.0, 2.0], "height": [3, 4], "y": [0, 1]})
    pq.write_table(table, tmp_path / "columns.parquet")
    contents = read_parquet([tmp_path / "columns.parquet"], Reading())
    np.testing.assert_array_equal(contents.inputs, np.array([[1, 3], [2, 4]], np.float32))
    lists = pa.table({"features": pa.array([[1.0, 3.0], [2.0, 4.0]], pa.list_(pa.float32())), "y": [0, 1]})
    pq.write_table(lists, tmp_path / "lists.parquet")
    from_lists = read_parquet([tmp_path / "lists.parquet"], Reading())
    np.testing.assert_array_equal(from_lists.inputs, contents.inputs)
    assert from_lists.inputs.dtype == np.float32
    assert from_lists.inputs.flags.writeable


def test_a_file_that_was_cut_off(write_parquet: WriteParquet) -> None:
    path = write_parquet(encode(random_images(3)), [0, 1, 2])
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(DataError, match=r"train\.parquet cannot be read as parquet"):
        read_parquet([path], Reading())


def test_an_unreadable_image_is_named_by_file_and_row(write_parquet: WriteParquet) -> None:
    encoded = encode(random_images(3))
    encoded[1] = encoded[1][:40]
    with pytest.raises(DataError, match=r"train\.parquet, row 1 cannot be read as an image"):
        read_parquet([write_parquet(encoded, [0, 1, 2])], Reading())


def test_a_missing_image_is_named(write_parquet: WriteParquet) -> None:
    encoded = [*encode(random_images(2)), None]
    with pytest.raises(DataError, match="row 2 holds no image"):
        read_parquet([write_parquet(encoded, [0, 1, 2])], Reading())


def test_mixed_sizes_say_how_to_mend_them(write_parquet: WriteParquet) -> None:
    path = write_parquet(encode(random_images(2)) + encode(random_images(1, side=7)), [0, 1, 2])
    with pytest.raises(DataError, match=r"row 2 is 3x7x7 while .* row 0 is 3x6x6; set data\.resize"):
        read_parquet([path], Reading())
    assert read_parquet([path], Reading(resize=4)).inputs.shape == (3, 3, 4, 4)


def test_mixed_channels_say_how_to_mend_them(write_parquet: WriteParquet) -> None:
    path = write_parquet(encode(random_images(2)) + encode(random_images(1, channels=1)), [0, 1, 2])
    with pytest.raises(DataError, match=r"set data\.channels"):
        read_parquet([path], Reading())
    assert read_parquet([path], Reading(channels=3)).inputs.shape == (3, 3, 6, 6)


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([0, 3, 1], r"row 1: label 3 is out of range; 3 classes are 0\.\.2"),
        ([0, -1, 1], "row 1: label -1 is out of range"),
        ([0.5, 1.0, 2.0], "labels are float64"),
        ([0, None, 1], "row 1: the label is missing"),
        (["a", "b", "c"], "whole number"),
    ],
)
def test_bad_labels(write_parquet: WriteParquet, labels: list[int], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        read_parquet([write_parquet(encode(random_images(3)), labels)], Reading())


def test_an_empty_file(write_parquet: WriteParquet) -> None:
    with pytest.raises(DataError, match="is empty"):
        read_parquet([write_parquet([], pa.array([], pa.int64()))], Reading())


def test_nan_is_named_by_row(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1.0, float("nan")], "label": [0, 1]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="column 'a', row 1: the cell is empty"):
        read_parquet([tmp_path / "t.parquet"], Reading())


def test_lists_of_different_lengths(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [[1.0, 2.0], [1.0]], "label": [0, 1]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="row 1: column 'x' holds 1 numbers"):
        read_parquet([tmp_path / "t.parquet"], Reading())


def test_text_and_unknown_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"text": ["good", "bad"], "label": [0, 1]}), path)
    with pytest.raises(DataError, match=r"set data\.input_column"):
        read_parquet([path], Reading())
    with pytest.raises(DataError, match="column 'text' holds texts, but images or numbers are needed"):
        read_parquet([path], Reading(input_column="text"))
    with pytest.raises(DataError, match="did you mean 'label'"):
        read_parquet([path], Reading(label_column="lable"))
