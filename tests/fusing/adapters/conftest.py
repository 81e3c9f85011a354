"""Bases and five adapters of an encoder, made once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a small network of this kind."""
    from tests.fusing.adapters.making import save_base

    found: dict[str, Path] = {}

    def get(kind: str) -> Path:
        if kind not in found:
            found[kind] = save_base(kind, tmp_path_factory.mktemp("bases") / kind)
        return found[kind]

    return get


@pytest.fixture(scope="session")
def five(base: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Adapters of different ranks and alphas, layers and kinds; d is rsLoRA, e is DoRA."""
    from tests.fusing.adapters.making import save_adapter

    folder, encoder = tmp_path_factory.mktemp("five"), base("encoder")
    options = {
        "a": {"r": 1, "lora_alpha": 2, "target_modules": ["query", "value"]},
        "b": {"r": 2, "lora_alpha": 3, "target_modules": ["query"]},
        "c": {"r": 3, "lora_alpha": 1, "target_modules": ["query", "dense"], "alpha_pattern": {"pooler.dense": 5}},
        "d": {"r": 2, "lora_alpha": 4, "target_modules": ["query", "value"], "use_rslora": True},
        "e": {"r": 2, "lora_alpha": 2, "target_modules": ["value"], "use_dora": True},
    }
    return {
        name: save_adapter(encoder, folder / name, seed, task_type="SEQ_CLS", **own)
        for seed, (name, own) in enumerate(options.items())
    }
