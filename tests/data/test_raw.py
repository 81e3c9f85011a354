"""What a model keeps of its data: the settings with what they leave open, and refusals of what does not fit."""

from __future__ import annotations

import pytest
import torch

from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.core.text import PADDING, TextShape
from fedfuse.data import DataSettings, load
from fedfuse.data.pretrained_tokens import Pretrained
from fedfuse.data.raw import RawImages, RawNumbers, RawTexts, raw_inputs_of
from fedfuse.data.raw import texts as raw_texts
from fedfuse.data.tokens import TextSettings, tokenizer_of


def test_the_tokenizer_of_words_is_kept_with_the_numbers_that_the_settings_leave_open():
    settings = TextSettings(max_length=5)
    kept = RawTexts.of(tokenizer_of(settings), settings)
    assert kept.text == TextSettings(max_length=5, vocabulary=10_000)
    again = RawTexts.model_validate_json(kept.model_dump_json())
    tokens = again.read(["Some words", "and more"], TextShape(5, 10_000))
    assert tokens.dtype == torch.int32
    assert torch.equal(tokens, torch.from_numpy(tokenizer_of(settings)(["Some words", "and more"])))


def test_bytes_keep_no_vocabulary():
    settings = TextSettings(tokenizer="bytes", max_length=5, lower=False)
    assert RawTexts.of(tokenizer_of(settings), settings).text == settings


def test_a_pretrained_tokenizer_is_recognised_by_its_hash(monkeypatch):
    settings = TextSettings(tokenizer="some/folder", max_length=5)
    kept = RawTexts.of(Pretrained(5, "some/folder", "abc", None), settings)
    assert kept.sha256 == "abc"
    monkeypatch.setattr(raw_texts, "tokenizer_of", lambda _: Pretrained(5, "some/folder", "xyz", None))
    with pytest.raises(DataError, match="the tokenizer some/folder is not the one that the model was trained with"):
        kept.read("a text", TextShape(5, 100))


@pytest.mark.parametrize(
    ("kind", "shape", "sentence"),
    [
        (RawTexts(text=TextSettings(max_length=5)), TextShape(6, 10_000), "texts of 5 tokens do not fit inputs of"),
        (RawTexts(text=TextSettings(max_length=5)), TextShape(5, 300), "a network that knows 300"),
        (RawTexts(text=TextSettings(max_length=5)), (5,), "do not fit inputs of"),
        (RawImages(mean=(0.5,), std=(1,)), (3, 8, 8), "constants of 1 channels or columns do not fit"),
        (RawImages(mean=(0.5,), std=(1,)), (1, 8), "images have channels, height and width"),
        (RawNumbers(mean=(0.5,), std=(1,)), TextShape(1, 10), "constants of 1 channels or columns do not fit"),
        (RawNumbers(mean=(0.5,), std=(1,), columns=("a", "b")), (1,), "2 names of columns do not fit"),
    ],
)
def test_a_shape_that_cannot_be(kind, shape, sentence):
    with pytest.raises(ValueError, match=sentence):
        kind.check(shape)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {"resize": None, "channels": 1}),
        ({"resize": 12, "channels": 3}, {"resize": 12, "channels": 3}),
        ({"normalisation": "half"}, {"mean": (0.5,), "std": (0.5,)}),
    ],
)
def test_images_are_kept_as_the_experiment_had_them(settings, expected):
    chosen = DataSettings(name="digits", **settings)
    kept = raw_inputs_of(load(chosen, Key(0)), chosen).model_dump()
    assert expected.items() <= kept.items()


def test_made_up_inputs_are_like_real_ones():
    random = torch.Generator().manual_seed(0)
    images = RawImages(mean=(0.5,), std=(1,)).made_up(50, (1, 8, 8), random)
    assert (images.dtype, images.shape) == (torch.uint8, (50, 1, 8, 8))
    rows = RawNumbers(mean=(100.0, -5.0), std=(10.0, 0.1)).made_up(4000, (2,), random)
    torch.testing.assert_close(rows.mean(dim=0), torch.tensor([100.0, -5.0]), rtol=0.01, atol=0)
    tokens = RawTexts(text=TextSettings(max_length=5)).made_up(50, TextShape(5, 9), random)
    assert tokens.dtype == torch.int32
    assert 0 < int((tokens == PADDING).sum()) < tokens.numel()
    ends = (tokens != PADDING).long()
    assert bool((ends.diff(dim=1) <= 0).all()), "padding is at the end"
    assert int(ends[:, 0].min()) == 1
