"""Small models of every format, made once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.data.raw import RawImages
from fedfuse.models import Classifier, Mlp, create
from fedfuse.models.interface import Interface
from fedfuse.models.saved import load_model, save_model

NAMES = ("cat", "dog", "owl")
MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.3, 0.4)
SIDE = 8


@pytest.fixture(scope="session")
def images() -> Tensor:
    return torch.randint(256, (70, 3, SIDE, SIDE), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a model of fedfuse."""
    path = tmp_path_factory.mktemp("saved") / "net.safetensors"
    network = create(Mlp(arch="mlp", hidden=[6]), (3, SIDE, SIDE), 3, Key(3))
    interface = Interface(inputs=RawImages(mean=MEAN, std=STD), class_names=NAMES)
    save_model(path, Mlp(arch="mlp", hidden=[6]), (3, SIDE, SIDE), 3, Weights.of(network), interface)
    return path


@pytest.fixture
def network(saved: Path) -> Classifier:
    return load_model(saved)


@pytest.fixture(scope="session")
def vit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of transformers, without a preprocessor."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("hf") / "vit"
    config = transformers.ViTConfig(
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=SIDE,
        patch_size=4,
        id2label=dict(enumerate(NAMES)),
        label2id={name: number for number, name in enumerate(NAMES)},
    )
    with Key(5).default_generator():
        transformers.ViTForImageClassification(config).save_pretrained(folder)
    return folder


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad", "film", "very"]


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a classifier of texts with its tokenizer, whose padding is not number 0."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("hf") / "bert"
    folder.mkdir(parents=True)
    tokenizer(transformers, [*WORDS[1:], WORDS[0]]).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=12,
        pad_token_id=len(WORDS) - 1,
        num_labels=2,
    )
    with Key(6).default_generator():
        transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def tokenizer(transformers: Any, words: list[str]) -> Any:
    """One that knows these words."""
    import tokenizers

    numbers = {word: number for number, word in enumerate(words)}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="[UNK]"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="[UNK]", pad_token="[PAD]", model_max_length=10
    )
