"""What an adapter says of itself in ``adapter_config.json``, as peft writes it.

LoRA (Hu et al., ICLR 2022) scales its product by alpha / r, rsLoRA (Kalajdzievski, 2023) by alpha / sqrt(r). Rank and
alpha may differ from layer to layer, by patterns of names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedfuse.core.errors import DataError, shortened
from fedfuse.fusing.members.files import read_json

CONFIG = "adapter_config.json"
LONGEST_CONFIG = 5_000_000
LARGEST_RANK = 65_536
TEXT_CLASSIFIER, IMAGE_CLASSIFIER = "SEQ_CLS", "IMAGE_CLS"
PATTERN = re.compile(r"\^?(?:[\w-]|\.\*|\\\.|\\d\+?|\.)+\$?")
"""Patterns of layers' names that are tried; others could keep a processor busy for ever."""
MOST_REPEATS = 3
KEEPS_BASE = (None, True, False, "gaussian", "eva", "orthogonal")
"""Beginnings of training after which the base is still what its folder holds."""
UNKNOWN = (
    "alora_invocation_tokens", "arrow_config", "kasa_config", "layer_replication", "lora_bias", "monteclora_config",
    "target_parameters", "trainable_token_indices", "use_bdlora", "use_qalora", "velora_config",
)  # fmt: skip
"""Keys of kinds of LoRA that are not known here, if they are set."""


@dataclass(frozen=True)
class AdapterConfig:
    """The keys that decide what the adapted network says."""

    where: Path
    rank: int
    alpha: float
    ranks: Mapping[str, int]
    alphas: Mapping[str, float]
    rank_stabilised: bool
    has_magnitudes: bool
    """DoRA (Liu et al., ICML 2024)."""
    base: str | None
    """Where the base model lay when the adapter was trained."""
    class_name: str | None
    """Of the network that was trained, where the file has it."""
    is_text_classifier: bool

    @staticmethod
    def read(folder: Path) -> AdapterConfig:
        """From a folder, or one sentence about what cannot be read here."""
        where = folder / CONFIG
        said = read_json(where, LONGEST_CONFIG)
        _check_known(said, where)
        mapping = said.get("auto_mapping")
        class_name = mapping.get("base_model_class") if isinstance(mapping, Mapping) else None
        base = said.get("base_model_name_or_path")
        return AdapterConfig(
            where=where,
            rank=_rank(said.get("r", 8), where),
            alpha=_alpha(said.get("lora_alpha", 8), where),
            ranks={pattern: _rank(value, where) for pattern, value in _patterns(said, "rank_pattern", where)},
            alphas={pattern: _alpha(value, where) for pattern, value in _patterns(said, "alpha_pattern", where)},
            rank_stabilised=said.get("use_rslora") is True,
            has_magnitudes=said.get("use_dora") is True,
            base=base if isinstance(base, str) and base else None,
            class_name=class_name if isinstance(class_name, str) else None,
            is_text_classifier=said.get("task_type") == TEXT_CLASSIFIER,
        )

    def rank_of(self, layer: str) -> int:
        """Of the factors of a layer."""
        return self.ranks.get(_matching(self.ranks, layer), self.rank)

    def scaling_of(self, layer: str) -> float:
        """What the product of a layer's factors is multiplied by."""
        alpha, rank = self.alphas.get(_matching(self.alphas, layer), self.alpha), self.rank_of(layer)
        return alpha / math.sqrt(rank) if self.rank_stabilised else alpha / rank


def _check_known(said: Mapping[str, Any], where: Path) -> None:
    kind = said.get("peft_type")
    if kind != "LORA":
        raise DataError(f"{where}: adapters of type {shortened(str(kind))!a} are not known here, only LORA is")
    for key in UNKNOWN:
        if said.get(key):
            raise DataError(f"{where}: {key} is set, and such adapters are not known here; merge it with peft first")
    begun = said.get("init_lora_weights")
    if not isinstance(begun, bool | str | None) or begun not in KEEPS_BASE:
        raise DataError(
            f"{where}: its training began with {shortened(str(begun))!a}, which changes the base model; merge it with "
            "peft first"
        )


def _patterns(said: Mapping[str, Any], key: str, where: Path) -> list[tuple[str, Any]]:
    value = said.get(key) or {}
    if not isinstance(value, Mapping):
        raise DataError(f"{where}: {key} is no mapping from layers to numbers")
    for pattern in value:
        repeats = pattern.count("*") + pattern.count("+")
        if len(pattern) > 500 or repeats > MOST_REPEATS or not PATTERN.fullmatch(pattern):
            raise DataError(f"{where}: {key} has the pattern {shortened(pattern)!a}; name the layers themselves")
    return list(value.items())


def _matching(patterns: Mapping[str, Any], layer: str) -> str:
    """The first pattern that the end of a layer's name fits, as for peft."""
    return next((one for one in patterns if re.match(rf"(.*\.)?({one})$", layer)), "")


def _rank(value: Any, where: Path) -> int:
    if type(value) is not int or not 1 <= value <= LARGEST_RANK:
        raise DataError(f"{where}: {shortened(str(value))!a} is no rank; it should be a number from 1 on")
    return value


def _alpha(value: Any, where: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1e9:
        raise DataError(f"{where}: {shortened(str(value))!a} is no alpha; it should be a number")
    return float(value)
