"""Small networks of transformers, and adapters of them that peft makes."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from fedfuse.core.randomness import Key
from tests.fusing.members.conftest import WORDS, tokenizer

os.environ.setdefault("HF_HUB_OFFLINE", "1")
transformers: Any = pytest.importorskip("transformers")
peft: Any = pytest.importorskip("peft")

HEADS = {"bert": "classifier", "encoder": "classifier", "gpt2": "score", "vit": "classifier", "resnet": "classifier"}


def network_of(kind: str) -> nn.Module:
    """A classifier of three classes; of an encoder, the encoder alone."""
    if kind in ("bert", "encoder"):
        config = transformers.BertConfig(
            vocab_size=len(WORDS), hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
            max_position_embeddings=12, num_labels=3,
        )  # fmt: skip
        cls = transformers.BertModel if kind == "encoder" else transformers.BertForSequenceClassification
    elif kind == "roberta":
        config = transformers.RobertaConfig(
            vocab_size=len(WORDS), hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
            max_position_embeddings=14, num_labels=3, pad_token_id=0,
        )  # fmt: skip
        cls = transformers.RobertaForSequenceClassification
    elif kind == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=len(WORDS), n_positions=12, n_embd=8, n_layer=2, n_head=2, pad_token_id=0, num_labels=3
        )
        cls = transformers.GPT2ForSequenceClassification
    elif kind == "vit":
        config = transformers.ViTConfig(
            hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, image_size=8, patch_size=4,
            num_labels=3,
        )  # fmt: skip
        cls = transformers.ViTForImageClassification
    else:
        config = transformers.ResNetConfig(
            embedding_size=4, hidden_sizes=[4, 8], depths=[1, 1], layer_type="basic", num_labels=3
        )
        cls = transformers.ResNetForImageClassification
    with Key(1).default_generator():
        network: nn.Module = cls(config)
    return network


def save_base(kind: str, folder: Path) -> Path:
    network_of(kind).save_pretrained(folder)
    if kind in ("bert", "encoder", "gpt2", "roberta"):
        tokenizer(transformers, WORDS).save_pretrained(folder)
    return folder


def classifier(base: Path, classes: int = 3) -> Any:
    """The base as a classifier; what it has no weights for is drawn, the same every time."""
    kind = transformers.AutoConfig.from_pretrained(base).model_type
    auto = "AutoModelForImageClassification" if kind in ("vit", "resnet") else "AutoModelForSequenceClassification"
    with Key(2).default_generator():
        return getattr(transformers, auto).from_pretrained(base, num_labels=classes, ignore_mismatched_sizes=True)


def save_adapter(base: Path, folder: Path, seed: int, classes: int = 3, **options: Any) -> Path:
    """An adapter that has learnt something: all that it trains is moved at random."""
    with Key(seed).default_generator():
        adapted = peft.get_peft_model(classifier(base, classes), peft.LoraConfig(**options))
        with torch.no_grad():
            for name, parameter in adapted.named_parameters():
                if parameter.requires_grad:
                    scale = 0.3 if "magnitude" not in name else 0.2 * parameter.abs().mean()
                    parameter.add_(scale * torch.randn_like(parameter))
    adapted.save_pretrained(folder)
    return folder


def by_peft(base: Path, adapter: Path, classes: int = 3) -> Any:
    """The network as peft loads it."""
    return peft.PeftModel.from_pretrained(classifier(base, classes), adapter).eval()


@cache
def merged_by_peft(base: Path, adapter: Path, classes: int = 3) -> dict[str, Tensor]:
    """Its weights once peft has merged the adapter into the base, by the names that transformers saves them under."""
    return saved_by(by_peft(base, adapter, classes).merge_and_unload())


def saved_by(network: Any) -> dict[str, Tensor]:
    with TemporaryDirectory() as folder:
        network.save_pretrained(folder)
        return load_file(Path(folder) / "model.safetensors")
