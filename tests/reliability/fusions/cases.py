"""What is fused: small models of every kind, and the words of a command for each way to make one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.fusing import conftest
from tests.fusing.conftest import Digits

ONE = ("--set", "threads=1")
"""Thread, because a pool of them does not survive a fork."""
STEPS = (*ONE, "--set", "steps=300", "--set", "batch_size=32")
DATA = ("--data", "images.npz")
EXAMPLES = ("--examples", "labelled.npz")
SMALL = "{kind: synthesised, size: 64, batch_size: 32, steps: 10}"
ABC = ("a.safetensors", "b.safetensors", "c.safetensors")
ADAPTERS = ("adapters/a", "adapters/b", "adapters/c")

CASES: dict[str, Sequence[str]] = {
    "distil": (*ABC, "--student", "mlp", *DATA, *EXAMPLES, *STEPS),
    "workers": (*ABC, "--student", "cnn2", *DATA, "--workers", "2", *STEPS),
    "fedbe": ("a.safetensors", "b.safetensors", "--method", "fedbe", "--set", "samples=2", *DATA, *STEPS),
    "no data": ("a.safetensors", "b.safetensors", "--data", SMALL, *STEPS),
    "in memory": ("a.safetensors", "b.safetensors", "--method", "average"),
    "file by file": ("vits/a", "vits/b", "--method", "ties", "--base", "vits/base"),
    "adapters": (*ADAPTERS, "--method", "average", *ONE),
    "as lora": (*ADAPTERS, "--method", "average", "--as", "lora", "--rank", "2", *ONE),
    "another form": ("a.safetensors", "b.safetensors", "--student", "vits/base", *DATA, *STEPS, "--overwrite"),
}
"""The last is written in the place of a result of another form."""
BEFORE: dict[str, Sequence[str]] = {"another form": CASES["in memory"]}


def make(folder: Path, cases: Iterable[str]) -> None:
    """The models and the data that these cases name."""
    torch.set_num_threads(1)
    words = {word.partition("/")[0] for case in cases for word in (*CASES[case], *BEFORE.get(case, ()))}
    if words & {*ABC}:
        _make_digits(folder)
    if "vits" in words:
        for name, seed in {"base": 0, "a": 1, "b": 2}.items():
            _vit(seed).save_pretrained(folder / "vits" / name)
    if "adapters" in words:
        _make_adapters(folder)


def _make_digits(folder: Path) -> None:
    digits: Digits = conftest.digits.__wrapped__()
    for seed, (name, architecture) in enumerate({"a": conftest.MLP, "b": conftest.MLP, "c": conftest.CNN}.items()):
        conftest.train(digits, architecture, range(10), seed, folder / f"{name}.safetensors")
    np.savez(folder / "images.npz", digits.public.numpy())
    np.savez(folder / "labelled.npz", x=digits.test[0].numpy(), y=digits.test[1].numpy())


def _make_adapters(folder: Path) -> None:
    from tests.fusing.adapters.making import save_adapter, save_base

    encoder = save_base("encoder", folder / "encoder")
    options: dict[str, Any] = {"task_type": "SEQ_CLS", "lora_alpha": 2, "target_modules": ["query", "value"]}
    for rank, name in enumerate("abc", start=1):
        save_adapter(encoder, folder / "adapters" / name, rank, r=rank, **options)


def _vit(seed: int) -> Any:
    import transformers

    config = transformers.ViTConfig(
        hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, image_size=8, patch_size=4,
        num_channels=1, num_labels=10,
    )  # fmt: skip
    torch.manual_seed(seed)
    return transformers.ViTForImageClassification(config)
