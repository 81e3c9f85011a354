"""LoRA adapters of peft on a sound base."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any

import torch
import transformers  # noqa: F401  what reads these
from safetensors.torch import save

from tests.fuzzing.models_of_others import HOSTILE, Files, bert, damaged, folder_of, opened_and_asked
from tests.fuzzing.place import place

LAYER = "bert.encoder.layer.0.attention.self"
OPTIONS: tuple[Mapping[str, Any], ...] = (
    {"r": 2, "lora_alpha": 4, "target_modules": ["query", "value"]},
    {"r": 2, "lora_alpha": 4, "target_modules": "query|value", "use_rslora": True, "bias": "lora_only"},
)


def honest() -> list[Files]:
    return [_adapter(number) for number in range(len(OPTIONS))]


@cache
def _adapter(number: int) -> Files:
    random = torch.Generator().manual_seed(number)
    tensors = {}
    for layer in ("query", "value"):
        name = f"base_model.model.{LAYER}.{layer}"
        tensors[f"{name}.lora_A.weight"] = torch.randn(2, 8, generator=random)
        tensors[f"{name}.lora_B.weight"] = torch.randn(8, 2, generator=random)
    config = {"peft_type": "LORA", "task_type": "SEQ_CLS", "base_model_name_or_path": "elsewhere", **OPTIONS[number]}
    return {"adapter_config.json": json.dumps(config).encode(), "adapter_model.safetensors": save(tensors)}


def mutate(rng: Random, case: Files) -> Files:
    return damaged(rng, case, (*HOSTILE, {"query": 3}, {"query": 10**9}, "(a+)+$", "all-linear", ["query"]))


def read(case: Files) -> None:
    base = place("base")
    if not base.exists():
        base.mkdir()
        for name, content in bert().items():
            (base / name).write_bytes(content)
    opened_and_asked(folder_of(case), base=base)
