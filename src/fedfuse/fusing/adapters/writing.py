"""An adapter for peft: low-rank changes of layers, whole tensors for the rest, and a config that says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.files import write_text
from fedfuse.core.plain_json import dumps
from fedfuse.core.tensor_files import Like, write_pieces
from fedfuse.fusing.adapters.base import Base
from fedfuse.fusing.adapters.config import CONFIG, TEXT_CLASSIFIER
from fedfuse.fusing.adapters.layers import Kind
from fedfuse.fusing.adapters.low_rank import Factors
from fedfuse.fusing.adapters.member import WEIGHTS
from fedfuse.fusing.adapters.tensors import PREFIX
from fedfuse.fusing.members.tensors import check_finite

BIAS = "bias"
HEADS = ("classifier", "score")
"""How the last layers of classifiers of texts end, which peft expects in every adapter of one."""


@dataclass(frozen=True)
class Shelf:
    """Where every tensor of an adapter belongs, by the network's names."""

    layers: Mapping[str, Factors]
    """Low-rank changes, by layers."""
    biases: Mapping[str, Tensor]
    modules: Mapping[str, Mapping[str, Tensor]]
    """Layers that are saved whole, with all their tensors."""


def shelved(
    base: Base, changes: Mapping[str, Factors], whole: Mapping[str, Tensor], weights: Mapping[str, Tensor]
) -> Shelf:
    """From tensors by the names of files: low-rank changes, whole ones, and all weights of the network."""
    own = {name: inner for inner, name in base.names.items()}
    modules = _outermost({_module(own[name]) for name in whole if not _is_bias(own[name])} | _heads(base))
    within = {name: next((one for one in modules if own[name].startswith(f"{one}.")), None) for name in base.shapes}
    return Shelf(
        {own[name].removesuffix(".weight"): one for name, one in changes.items() if within[name] is None},
        {own[name]: tensor for name, tensor in whole.items() if within[name] is None},
        {one: {own[name]: weights[name] for name in base.shapes if within[name] == one} for one in modules},
    )


def write_adapter(folder: Path, base: Base, shelf: Shelf) -> list[Path]:
    """The two files that ``PeftModel.from_pretrained`` reads."""
    if not shelf.layers:
        raise ConfigError("no layer differs from the base, so there is nothing to write as LoRA")
    tensors = dict(_tensors(base, shelf))
    check_finite(tensors, "the adapter")
    likes = {name: Like(tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items()}
    write_pieces(folder / WEIGHTS, likes, lambda name: [tensors[name]])
    write_text(folder / CONFIG, dumps(_config(base, shelf), indent=2) + "\n")
    return [folder / WEIGHTS, folder / CONFIG]


def _tensors(base: Base, shelf: Shelf) -> Iterator[tuple[str, Tensor]]:
    for name, factors in shelf.layers.items():
        kind, shape = base.kinds[name], base.shapes[base.names[f"{name}.weight"]]
        for ending, tensor in _factors(kind, shape, factors):
            yield f"{PREFIX}{name}.{ending}", tensor.to(torch.float32).contiguous()
    for name, tensor in shelf.biases.items():
        module = _module(name)
        yield f"{PREFIX}{module}.base_layer.{BIAS}" if module in shelf.layers else f"{PREFIX}{name}", tensor
    for tensors in shelf.modules.values():
        for name, tensor in tensors.items():
            yield f"{PREFIX}{name}", tensor


def _factors(kind: Kind, shape: tuple[int, ...], factors: Factors) -> Iterator[tuple[str, Tensor]]:
    if kind == "embedding":
        yield "lora_embedding_A", factors.right
        yield "lora_embedding_B", factors.left
        return
    convolved = kind == "convolution"
    yield "lora_A.weight", factors.right.reshape(-1, *shape[1:]) if convolved else factors.right
    yield "lora_B.weight", factors.left[(..., *(None,) * (len(shape) - 2))] if convolved else factors.left


def _config(base: Base, shelf: Shelf) -> dict[str, Any]:
    """Alpha is the rank everywhere, so that products are taken as they are."""
    rank = max(factors.rank for factors in shelf.layers.values())
    others = {name: factors.rank for name, factors in shelf.layers.items() if factors.rank != rank}
    reads_texts = base.folder.task == "texts"
    return {
        "peft_type": "LORA",
        "task_type": TEXT_CLASSIFIER if reads_texts else None,
        "auto_mapping": None if reads_texts else {
            "base_model_class": base.folder.class_name, "parent_library": base.cls.__module__,
        },
        "base_model_name_or_path": str(base.folder.path.resolve()),
        "r": rank,
        "lora_alpha": rank,
        "rank_pattern": others,
        "alpha_pattern": others,
        "target_modules": sorted(shelf.layers),
        "modules_to_save": sorted(shelf.modules) or None,
        "bias": "all" if shelf.biases else "none",
        "fan_in_fan_out": any(base.kinds[name] == "transposed" for name in shelf.layers),
        "lora_dropout": 0.0,
        "use_rslora": False,
        "use_dora": False,
        "init_lora_weights": True,
        "inference_mode": True,
    }  # fmt: skip


def _heads(base: Base) -> set[str]:
    """Layers that are saved whole whether they differ from the base or not."""
    named = {name for name, _ in base.network.named_modules() if name.endswith(HEADS)}
    return {_module(name) for name in base.head} | (named if base.folder.task == "texts" else set())


def _outermost(modules: set[str]) -> list[str]:
    """Without those that are inside of others."""
    if "" in modules:
        raise ConfigError("the network has a weight outside of its layers, which no adapter can hold")
    return [one for one in sorted(modules) if not any(one.startswith(f"{other}.") for other in modules)]


def _module(name: str) -> str:
    return name.rpartition(".")[0]


def _is_bias(name: str) -> bool:
    return name.endswith(f".{BIAS}")
