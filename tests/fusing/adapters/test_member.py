"""Adapters are what peft makes of them, for each kind of LoRA; what is broken or unknown gets one sentence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from fedfuse.core.errors import DataError
from fedfuse.fusing.members import open_member
from tests.fusing.adapters.making import (
    HEADS,
    by_peft,
    classifier,
    merged_by_peft,
    save_adapter,
    saved_by,
    transformers,
)
from tests.fusing.members.asking import close, said_by

Bases = Callable[[str], Path]
TEXTS = ["good film", "very very bad film", "unheard"]
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("bert", {"r": 3, "lora_alpha": 5, "target_modules": ["query", "value"]}),
    "rank stabilised": ("bert", {"r": 4, "lora_alpha": 5, "target_modules": ["query"], "use_rslora": True}),
    "magnitudes": ("bert", {"r": 2, "lora_alpha": 5, "target_modules": ["query", "dense"], "use_dora": True}),
    "both": ("bert", {"r": 4, "target_modules": ["value"], "use_dora": True, "use_rslora": True}),
    "patterns": (
        "bert",
        {
            "r": 2, "lora_alpha": 3, "target_modules": ["query", "value"], "rank_pattern": {"layer.1.*query": 5},
            "alpha_pattern": {"0.attention.self.query": 7, "value": 1},
        },
    ),
    "embedding": ("bert", {"r": 2, "target_modules": ["word_embeddings", "key"]}),
    "embedding with magnitudes": ("bert", {"r": 2, "target_modules": ["word_embeddings"], "use_dora": True}),
    "all biases": ("bert", {"r": 2, "target_modules": ["query"], "bias": "all"}),
    "own biases": ("bert", {"r": 2, "target_modules": ["query"], "bias": "lora_only"}),
    "whole layers": ("bert", {"r": 2, "target_modules": ["query"], "modules_to_save": ["LayerNorm", "classifier"]}),
    "encoder": ("encoder", {"r": 2, "target_modules": ["query"]}),
    "transposed": ("gpt2", {"r": 2, "target_modules": ["c_attn", "c_proj"], "fan_in_fan_out": True}),
    "transposed with magnitudes": (
        "gpt2", {"r": 2, "target_modules": ["c_attn"], "fan_in_fan_out": True, "use_dora": True},
    ),
    "images": ("vit", {"r": 2, "target_modules": "all-linear"}),
    "patches": ("vit", {"r": 2, "target_modules": ["projection"], "use_rslora": True}),
    "convolutions": ("resnet", {"r": 3, "target_modules": ["convolution"]}),
    "convolutions with magnitudes": ("resnet", {"r": 3, "target_modules": ["convolution"], "use_dora": True}),
}  # fmt: skip


@pytest.mark.parametrize("case", KINDS)
def test_weights_are_those_that_peft_merges(case: str, base: Bases, tmp_path: Path) -> None:
    kind, options = KINDS[case]
    task = {"modules_to_save": [HEADS[kind]]} if kind in ("vit", "resnet") else {"task_type": "SEQ_CLS"}
    folder = save_adapter(base(kind), tmp_path / "adapter", 3, **{**task, **options})
    expected = merged_by_peft(base(kind), folder)
    weights = open_member(folder).weights
    assert weights is not None
    assert weights.keys() == expected.keys()
    before = saved_by(classifier(base(kind)))
    assert any(not torch.equal(expected[name], before[name]) for name in expected)
    for name, tensor in expected.items():
        assert torch.allclose(weights[name], tensor, rtol=1e-5, atol=1e-6), name


def test_it_answers_as_peft_does(base: Bases, five: dict[str, Path]) -> None:
    tokens = transformers.AutoTokenizer.from_pretrained(base("encoder"))
    for folder in five.values():
        member = open_member(folder)
        with torch.no_grad():
            prepared = tokens(TEXTS, padding=True, truncation=True, max_length=10, return_tensors="pt")
            expected = by_peft(base("encoder"), folder)(**prepared).logits
        assert close(said_by(member, TEXTS), expected, 1e-5)
        assert (member.about.format, member.about.classes) == ("LoRA adapter", 3)
        assert member.about.base_model == str(base("encoder"))


def test_its_own_last_layer_counts_the_classes(base: Bases, tmp_path: Path) -> None:
    options = {"task_type": "SEQ_CLS", "r": 2, "target_modules": ["query"]}
    folder = save_adapter(base("bert"), tmp_path / "seven", 1, classes=7, **options)
    member = open_member(folder)
    assert member.about.classes == 7
    assert said_by(member, TEXTS).shape == (3, 7)


def test_the_base_may_lie_elsewhere(base: Bases, five: dict[str, Path], tmp_path: Path) -> None:
    moved = Path(shutil.copytree(five["a"], tmp_path / "a"))
    change(moved, base_model_name_or_path="somebody/encoder")
    with pytest.raises(DataError, match="adapter of somebody/encoder, which is no folder here, and none is downloaded"):
        open_member(moved)
    expected = said_by(open_member(five["a"]), TEXTS)
    assert torch.equal(said_by(open_member(moved, base=base("encoder")), TEXTS), expected)
    shutil.copytree(base("encoder"), moved / "encoder")
    change(moved, base_model_name_or_path="encoder")
    assert torch.equal(said_by(open_member(moved), TEXTS), expected)


def change(folder: Path, **keys: Any) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **keys}))


QUERY = "base_model.model.bert.encoder.layer.0.attention.self.query"


class TestBroken:
    @pytest.mark.parametrize(
        ("keys", "sentence"),
        [
            ({"peft_type": "LOHA"}, "adapters of type 'LOHA' are not known here, only LORA is"),
            ({"peft_type": None}, "adapters of type 'None'"),
            ({"use_qalora": True}, "use_qalora is set"),
            ({"trainable_token_indices": [1]}, "trainable_token_indices is set"),
            ({"init_lora_weights": "pissa"}, "began with 'pissa', which changes the base model"),
            ({"init_lora_weights": [1]}, "began with"),
            ({"r": 0}, "'0' is no rank"),
            ({"r": "many"}, "'many' is no rank"),
            ({"lora_alpha": float("nan")}, "'nan' is no alpha"),
            ({"lora_alpha": 1e300}, "is no alpha"),
            ({"rank_pattern": [1]}, "rank_pattern is no mapping"),
            ({"alpha_pattern": {"(q+)+x": 2}}, "name the layers themselves"),
            ({"alpha_pattern": {".*" * 20: 2}}, "name the layers themselves"),
            ({"r": 2}, "has the shape .1, 8., but .2, 8. would fit"),
            ({"use_dora": True}, "lacks lora_magnitude_vector"),
            ({"base_model_name_or_path": None}, "does not name the model that it was trained from"),
            ({"base_model_name_or_path": "../../../etc"}, "which is no folder here"),
            ({"base_model_name_or_path": 3}, "does not name the model"),
            ({"task_type": "CAUSAL_LM"}, "is no adapter of a classifier"),
            ({"auto_mapping": {"base_model_class": "NoForSequenceClassification"}}, "does not have"),
        ],
    )
    def test_a_config(self, keys: dict[str, Any], sentence: str, five: dict[str, Path], tmp_path: Path) -> None:
        folder = Path(shutil.copytree(five["a"], tmp_path / "a"))
        change(folder, **keys)
        with pytest.raises(DataError, match=sentence):
            open_member(folder)

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            (lambda t: t.pop(f"{QUERY}.lora_B.weight"), "'bert.encoder.layer.0.attention.self.query' lacks lora_B"),
            (lambda t: t.update({f"{QUERY}.lora_B.weight": torch.ones(9, 1)}), "shape .9, 1., but .8, 1. would fit"),
            (lambda t: t.update({f"{QUERY}.lora_magnitude_vector": torch.ones(8)}), "should not have lora_magnitude"),
            (lambda t: t.update({f"{QUERY}s.lora_A.weight": torch.ones(1, 8)}), "does not have"),
            (lambda t: t.update({"../../x.lora_A.weight": torch.ones(1, 8)}), "'../../x.lora_A.weight' is for a layer"),
            (lambda t: t.update({f"{QUERY}.hada_w1_a": torch.ones(1, 8)}), "does not have"),
            (
                lambda t: t.update({"base_model.model.bert.embeddings.LayerNorm.lora_A.weight": torch.ones(1)}),
                "by LoRA",
            ),
            (lambda t: t.pop("base_model.model.classifier.weight"), "neither .* holds 'classifier.weight'"),
            (lambda t: t.update({"base_model.model.classifier.weight": torch.ones(1, 8)}), "its last layer has 1 rows"),
        ],
    )
    def test_tensors(self, change: Any, sentence: str, five: dict[str, Path], tmp_path: Path) -> None:
        folder = Path(shutil.copytree(five["a"], tmp_path / "a"))
        tensors = load_file(folder / "adapter_model.safetensors")
        change(tensors)
        if "rows" in sentence:
            tensors["base_model.model.classifier.bias"] = torch.ones(1)
        save_file(tensors, folder / "adapter_model.safetensors")
        with pytest.raises(DataError, match=sentence):
            open_member(folder)

    def test_numbers(self, five: dict[str, Path], tmp_path: Path) -> None:
        folder = Path(shutil.copytree(five["a"], tmp_path / "a"))
        tensors = load_file(folder / "adapter_model.safetensors")
        tensors[f"{QUERY}.lora_B.weight"][0] = torch.nan
        save_file(tensors, folder / "adapter_model.safetensors")
        with pytest.raises(DataError, match=r"query.lora_B.weight' holds what is not a finite number"):
            said_by(open_member(folder), TEXTS)

    def test_files(self, five: dict[str, Path], tmp_path: Path) -> None:
        folder = Path(shutil.copytree(five["a"], tmp_path / "a"))
        (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
        with pytest.raises(DataError, match=r"holds a pickle .adapter_model.bin., which is never opened"):
            open_member(folder)
        (folder / "adapter_model.bin").unlink()
        with pytest.raises(DataError, match=r"adapter_model.safetensors does not exist"):
            open_member(folder)
        (folder / "adapter_model.safetensors").write_bytes(b"\xff" * 20)
        with pytest.raises(DataError, match="no whole safetensors file"):
            open_member(folder)
        (folder / "adapter_config.json").write_text("[" * 100_000)
        with pytest.raises(DataError, match="is not JSON"):
            open_member(folder)
