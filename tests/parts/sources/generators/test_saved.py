"""A generator's file gives the same generator back, holds no encoder, and nothing else is taken for one."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors import safe_open

from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.core.tensor_files import read_safetensors, write_safetensors
from fedfuse.parts.sources.generators import (
    GeneratorTraining,
    VaeSettings,
    load_generator,
    save_generator,
    train_generator,
)
from tests.helpers import make_examples

SETTINGS = GeneratorTraining(network=VaeSettings(latent=2, hidden=5), epochs=1, seed=7)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "g.safetensors"
    train_generator(make_examples(20), 3, SETTINGS, path, trained_on="a toy")
    return path


def test_round_trip(file, tmp_path):
    generator = load_generator(file)
    assert not generator.decoder.training
    again = tmp_path / "again.safetensors"
    save_generator(again, generator)
    assert again.read_bytes() == file.read_bytes()
    trained = train_generator(make_examples(20), 3, SETTINGS, trained_on="a toy")
    assert torch.equal(trained(9, Key(0).torch()), generator(9, Key(0).torch()))


def test_the_file_holds_the_decoder_and_a_card(file):
    with safe_open(file, framework="pt") as opened:
        names, card = set(opened.keys()), json.loads(opened.metadata()["fedfuse"])
    assert names == set(load_generator(file).decoder.state_dict())
    assert card["network"] == {"latent": 2, "hidden": 5, "channels": 32}
    assert (card["input_shape"], card["input_kind"], card["classes"]) == ([4], "features", 3)
    assert (card["trained_on"], card["examples"], card["epochs"], card["seed"]) == ("a toy", 20, 1, 7)


def test_many_samples_are_the_same_as_their_labels_ask(file):
    generator = load_generator(file)
    labels = torch.arange(1200) % 3
    made = generator(1200, Key(0).torch(), labels)
    codes = torch.randn(1200, 2, generator=Key(0).torch())
    assert torch.allclose(made, generator.decoder.imitate(codes, labels), atol=1e-6)


@pytest.mark.parametrize("damage", ["empty", "cut", "other tensors", "no card", "another card", "newer format", "size"])
def test_other_files_are_refused(file, damage):
    tensors, card = read_safetensors(file)
    if damage in ("empty", "cut"):
        file.write_bytes(file.read_bytes()[: 0 if damage == "empty" else 200])
    elif damage == "other tensors":
        write_safetensors(file, {"a": torch.ones(2)}, card)
    elif damage == "no card":
        write_safetensors(file, tensors, {})
    elif damage == "another card":
        write_safetensors(file, tensors, {**card, "surprise": 1})
    elif damage == "newer format":
        write_safetensors(file, tensors, {**card, "format": 2})
    else:
        write_safetensors(file, tensors, {**card, "input_shape": [5]})
    with pytest.raises(DataError, match="is not a generator that fedfuse trained"):
        load_generator(file)


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.safetensors cannot be read"):
        load_generator(tmp_path / "nowhere.safetensors")
