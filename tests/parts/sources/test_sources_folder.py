"""A user's own inputs: read to the last file, without labels, in the shape and scale that the models read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.randomness import Key
from fedfuse.data import DataSettings, load
from fedfuse.parts.sources import UnlabelledFiles
from tests.data.samples import encode, png, random_images
from tests.parts.sources.surroundings import images, planar


def write_images(root, pixels):
    """One image per level of a deeper and deeper folder."""
    for number, data in enumerate(encode(pixels)):
        root.mkdir(parents=True, exist_ok=True)
        (root / f"{number}.png").write_bytes(data)
        root = root / "deeper"


def opened(path, surroundings=None, **options):
    return UnlabelledFiles(path=str(path), **options).open(surroundings or images())


class TestImages:
    def test_every_image_at_any_depth_is_there(self, tmp_path):
        pixels = random_images(4, 8, 1)
        write_images(tmp_path / "photos", pixels)
        source = opened(tmp_path / "photos")
        assert source.name == "photos"
        assert source.raw.dtype == torch.uint8
        assert {row.tobytes() for row in source.raw.numpy()} == {row.tobytes() for row in pixels}

    def test_normalised_and_augmented_as_the_experiment(self, tmp_path):
        write_images(tmp_path, random_images(4, 8, 1))
        surroundings = images(augment=True)
        source, every = opened(tmp_path, surroundings), torch.arange(4)
        assert torch.equal(source.inputs(every), surroundings.transform(source.raw))
        assert not torch.equal(source.augmented(every, Key(0)), source.inputs(every))

    @pytest.mark.parametrize(
        ("normalisation", "mean", "deviation"), [("none", 0, 1), ("half", 0.5, 0.5), ("dataset", None, None)]
    )
    def test_other_constants_and_the_same_augmentation(self, tmp_path, normalisation, mean, deviation):
        write_images(tmp_path, random_images(4, 8, 1))
        source = opened(tmp_path, images(augment=True), normalisation=normalisation)
        unit = source.raw.double() / 255
        mean = unit.mean() if mean is None else mean
        deviation = unit.std(correction=0) if deviation is None else deviation
        seen = source.inputs(torch.arange(4)).double()
        assert torch.allclose(seen, (unit - mean) / deviation, atol=1e-5)
        assert source.transform.crop_padding == 2

    def test_resize_and_channels(self, tmp_path):
        write_images(tmp_path, random_images(3, 16, 3))
        with pytest.raises(ConfigError, match=r"shape 3x16x16, but .* read 1x8x8; set source\.resize or source\.chann"):
            opened(tmp_path)
        assert opened(tmp_path, resize=8, channels=1).raw.shape == (3, 1, 8, 8)

    def test_fraction_and_limit_draw_a_seeded_part(self, tmp_path):
        write_images(tmp_path, random_images(8, 8, 1))
        part, again = (opened(tmp_path, fraction=0.5).raw for _ in range(2))
        assert torch.equal(part, again)
        assert len(part) == 4
        assert len(opened(tmp_path, limit=3)) == 3

    def test_an_unreadable_image_is_named(self, tmp_path):
        write_images(tmp_path, random_images(3, 8, 1))
        (tmp_path / "deeper" / "torn.png").write_bytes(png(random_images(1, 8, 1)[0, 0])[:40])
        with pytest.raises(DataError, match=r"torn\.png cannot be read as an image"):
            opened(tmp_path)

    def test_nothing_is_skipped_but_hidden_files(self, tmp_path):
        write_images(tmp_path, random_images(3, 8, 1))
        (tmp_path / ".DS_Store").write_bytes(b"x")
        (tmp_path / ".thumbnails").mkdir()
        (tmp_path / ".thumbnails" / "a.db").write_bytes(b"x")
        assert len(opened(tmp_path)) == 3
        (tmp_path / "notes.txt").write_text("x")
        with pytest.raises(DataError, match=r"notes\.txt is not an image"):
            opened(tmp_path)

    def test_different_sizes_are_refused_with_the_right_key(self, tmp_path):
        write_images(tmp_path / "a", random_images(2, 8, 1))
        write_images(tmp_path / "b", random_images(2, 6, 1))
        with pytest.raises(DataError, match=r"set source\.resize to make all images alike"):
            opened(tmp_path)

    @pytest.mark.parametrize("name", ["nowhere", "empty", "inputs.doc"])
    def test_a_path_without_images(self, tmp_path, name):
        (tmp_path / "empty").mkdir()
        (tmp_path / "inputs.doc").write_text("1,2")
        sentences = {
            "nowhere": r"source\.path: .* does not exist",
            "empty": "holds no images",
            "inputs.doc": r"neither a folder of images nor an \.npz, \.parquet, \.csv, \.jsonl or \.txt file",
        }
        with pytest.raises(DataError, match=sentences[name]):
            opened(tmp_path / name)


class TestArchives:
    @pytest.mark.parametrize("names", [("anything",), ("x",), ("inputs", "labels"), ("x_train", "y_train", "x_test")])
    def test_npz_with_or_without_labels(self, tmp_path, names):
        pixels = random_images(5, 8, 1)
        np.savez(tmp_path / "u.npz", **{names[0]: pixels}, **{name: np.arange(5.0) for name in names[1:]})
        assert np.array_equal(opened(tmp_path / "u.npz").raw.numpy(), pixels)

    @pytest.mark.parametrize(
        ("arrays", "sentence"),
        [
            ({"a": np.ones((2, 3)), "b": np.ones((2, 3))}, "holds a, b; it must hold one array"),
            ({"x": np.ones(3)}, r"inputs of shape \(3,\)"),
            ({"x": np.ones((0, 2))}, r"inputs of shape \(0, 2\)"),
            ({"x": np.full((3, 2), np.nan)}, "row 0: an input is NaN"),
        ],
    )
    def test_bad_archives(self, tmp_path, arrays, sentence):
        np.savez(tmp_path / "u.npz", **arrays)
        with pytest.raises(DataError, match=sentence):
            opened(tmp_path / "u.npz", planar())

    def test_kinds_must_agree(self, tmp_path):
        np.savez(tmp_path / "u.npz", x=np.ones((5, 2)))
        assert len(opened(tmp_path / "u.npz", planar())) == 5
        with pytest.raises(ConfigError, match="holds numbers, but the clients have images"):
            opened(tmp_path / "u.npz")
        with pytest.raises(ConfigError, match=r"source\.resize and source\.channels are for images"):
            opened(tmp_path / "u.npz", planar(), resize=3)


class TestParquet:
    def test_numbers_without_their_label(self, tmp_path):
        columns = {"a": [1.0, 2.0, 3.0], "label": [0, 1, 0], "b": [4.0, 5.0, 6.0]}
        path = tmp_path / "u.parquet"
        pq.write_table(pa.table(columns), path)
        assert opened(path, planar()).raw.tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
        assert load(DataSettings(name="parquet", path=str(path)), Key(0)).train.labels.tolist() == [0, 1, 0]

    def test_images_without_any_label(self, tmp_path):
        pixels = random_images(3, 8, 1)
        pq.write_table(pa.table({"picture": pa.array(encode(pixels))}), tmp_path / "u.parquet")
        assert np.array_equal(opened(tmp_path / "u.parquet").raw.numpy(), pixels)
        with pytest.raises(DataError, match=r"source\.input_column: u\.parquet has no column 'image'"):
            opened(tmp_path / "u.parquet", input_column="image")

    def test_empty(self, tmp_path):
        pq.write_table(pa.table({"a": pa.array([], pa.float32())}), tmp_path / "u.parquet")
        with pytest.raises(DataError, match="is empty"):
            opened(tmp_path / "u.parquet", planar())
