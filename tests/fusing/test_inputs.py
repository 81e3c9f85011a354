"""What members are asked about: files of every kind, arrays, texts whole, and one sentence for everything else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.randomness import Key
from fedfuse.fusing.inputs import Demand, Labelled, find_examples, find_inputs, label_inputs, numbers_of, raw_of

IMAGES, NUMBERS, TEXTS = Demand("images", (3, 16, 16)), Demand("numbers", (4,)), Demand("texts", (32,))


def find(what, demand=IMAGES):
    return find_inputs(what, demand, Key(0))


def picture(path, width, height, mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    Image.fromarray(pixels).convert(mode).save(path)


class TestImages:
    def test_a_folder_of_one_size_stays_as_it_is(self, tmp_path):
        for name in "ab":
            picture(tmp_path / name / "x.png", 12, 9)
        assert find(tmp_path).raw.shape == (2, 3, 9, 12)

    def test_other_sizes_and_colours_come_to_what_models_look_at(self, tmp_path):
        picture(tmp_path / "a.png", 40, 30)
        picture(tmp_path / "b.png", 12, 12, "L")
        assert find(tmp_path).raw.shape == (2, 3, 16, 16)

    def test_large_images_of_one_size_are_not_kept_larger_than_anybody_looks(self, tmp_path):
        picture(tmp_path / "a.png", 64, 64)
        picture(tmp_path / "b.png", 64, 64)
        assert find(tmp_path).raw.shape == (2, 3, 16, 16)

    def test_arrays(self):
        pixels = np.zeros((5, 8, 8, 3), np.uint8)
        assert raw_of(pixels, "x").shape == (5, 3, 8, 8)
        assert raw_of(torch.zeros(5, 1, 8, 8, dtype=torch.uint8), "x").shape == (5, 1, 8, 8)
        assert raw_of(np.zeros((5, 8, 8), np.uint8), "x").shape == (5, 1, 8, 8)

    def test_noise(self):
        made = find({"kind": "uniform_noise", "size": 7})
        assert made.raw.shape == (7, 3, 16, 16)
        assert torch.equal(made.raw, find({"kind": "uniform_noise", "size": 7}).raw)

    def test_an_image_that_is_none(self, tmp_path):
        picture(tmp_path / "a.png", 8, 8)
        (tmp_path / "b.png").write_bytes(b"no picture")
        with pytest.raises(DataError, match=r"b\.png cannot be read as an image"):
            find(tmp_path)


class TestTexts:
    STRANGE = ("plain", 'ünï, cödé; "quoted"', "  spaces  ", "1.5", "emoji 😀")

    def test_lines(self, tmp_path):
        (tmp_path / "x.txt").write_text("\n".join(["one", "", *self.STRANGE]), encoding="utf-8")
        assert find(tmp_path / "x.txt", TEXTS).raw == ["one", *self.STRANGE]

    @pytest.mark.parametrize("kind", ["csv", "parquet"])
    def test_tables_give_them_back_letter_by_letter(self, kind, tmp_path):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"text": self.STRANGE, "label": [0, 1, 0, 1, 0]})
        path = tmp_path / f"x.{kind}"
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
        told = find_examples(path, TEXTS)
        assert told.raw == list(self.STRANGE)
        assert told.labels.tolist() == [0, 1, 0, 1, 0]

    def test_one_text_is_no_list(self):
        with pytest.raises(DataError, match="is one text; give a list"):
            raw_of("a text", "inputs")


class TestRefusals:
    @pytest.mark.parametrize(
        ("what", "demand", "sentence"),
        [
            (np.zeros((4, 4)), IMAGES, "holds numbers, but the models read images"),
            (["a", "b"], NUMBERS, "holds texts, but the models read numbers"),
            (np.zeros((1, 3, 8, 8), np.uint8), IMAGES, r"has 1 input\(s\)"),
            (np.full((3, 4), np.nan), NUMBERS, "not finite"),
            (np.zeros((2, 2, 2, 2, 2)), IMAGES, "cannot be read"),
            ({"kind": "nois"}, IMAGES, "data: "),
            ({"kind": "uniform_noise"}, TEXTS, "makes inputs of a known size only"),
        ],
    )
    def test_one_sentence(self, what, demand, sentence):
        with pytest.raises((ConfigError, DataError), match=sentence) as told:
            find(what, demand)
        assert "\n" not in str(told.value)


class TestLabels:
    NAMES = ("cat", "dog", "owl")

    def test_words_are_found_among_the_classes(self):
        told = label_inputs(find(np.zeros((3, 4)), NUMBERS), ["owl", "cat", "owl"])
        assert numbers_of(told, self.NAMES).tolist() == [2, 0, 2]

    def test_numbers_are_places(self):
        assert numbers_of(Labelled("x", torch.zeros(2, 4), torch.tensor([2, 0])), self.NAMES).tolist() == [2, 0]

    def test_a_class_that_nobody_knows(self):
        told = label_inputs(find(np.zeros((2, 4)), NUMBERS), ["owl", "dgo"])
        with pytest.raises(DataError, match=r"no model knows the unknown class 'dgo' .did you mean 'dog'"):
            numbers_of(told, self.NAMES)

    def test_a_folder_with_a_class_that_has_no_example_here(self, tmp_path):
        picture(tmp_path / "owl" / "1.png", 8, 8)
        picture(tmp_path / "cat" / "1.png", 8, 8)
        assert numbers_of(find_examples(tmp_path, IMAGES), self.NAMES).tolist() == [0, 2]
