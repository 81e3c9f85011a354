"""Adapters into one: the merge of what peft makes of each, written whole or as one adapter that peft loads."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from typer.testing import CliRunner

import fedfuse
from fedfuse.cli.app import app
from fedfuse.core.errors import ConfigError, DataError
from fedfuse.fusing.members import open_member
from tests.fusing.adapters.making import (
    by_peft,
    classifier,
    merged_by_peft,
    save_adapter,
    save_base,
    saved_by,
    transformers,
)
from tests.fusing.members.asking import close, said_by

Bases = Callable[[str], Path]
Adapters = dict[str, Path]
TEXTS = ["good film", "very very bad film", "unheard"]
RANKS = 1 + 2 + 3 + 2 + 8
"""The sum of the ranks of all five; a change by DoRA can have any rank, here up to 8."""


def states(base: Path, five: Adapters) -> list[dict[str, np.ndarray]]:
    return [
        {name: tensor.double().numpy() for name, tensor in merged_by_peft(base, folder).items()}
        for folder in five.values()
    ]


def average(base: Path, five: Adapters) -> dict[str, Tensor]:
    every = states(base, five)
    return {name: torch.from_numpy(sum(state[name] for state in every) / len(every)) for name in every[0]}


def same(one: dict[str, Tensor], other: dict[str, Tensor], tolerance: float = 1e-6) -> bool:
    return one.keys() == other.keys() and all(
        torch.allclose(one[name].double(), other[name].double(), rtol=1e-5, atol=tolerance) for name in one
    )


def test_a_whole_model(base: Bases, five: Adapters, tmp_path: Path) -> None:
    fedfuse.fuse(five, method="average", out=tmp_path / "out")
    network = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    assert same(saved_by(network), average(base("encoder"), five))
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "out")("good")["input_ids"]


def test_an_adapter_of_enough_rank_is_exact(base: Bases, five: Adapters, tmp_path: Path) -> None:
    result = fedfuse.fuse(five, method="average", as_lora=True, rank=RANKS, out=tmp_path / "out")
    expected = average(base("encoder"), five)
    assert same(merged_by_peft(base("encoder"), tmp_path / "out"), expected)
    assert any("nothing is left out" in reason for reason in result.reasons)
    written = open_member(tmp_path / "out")
    assert same(dict(written.weights or {}), expected)
    tokens = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    with torch.no_grad():
        prepared = tokens(TEXTS, padding=True, return_tensors="pt")
        logits = by_peft(base("encoder"), tmp_path / "out")(**prepared).logits
    assert close(said_by(written, TEXTS), logits)


def test_what_a_smaller_rank_leaves_out_is_what_the_singular_values_say(
    base: Bases, five: Adapters, tmp_path: Path
) -> None:
    fedfuse.fuse(five, method="average", as_lora=True, rank=2, out=tmp_path / "out")
    exact, found = average(base("encoder"), five), merged_by_peft(base("encoder"), tmp_path / "out")
    before = saved_by(classifier(base("encoder")))
    left_out = norm = 0.0
    for name, tensor in exact.items():
        change = (tensor - before[name].double()).numpy()
        if change.ndim == 2 and np.abs(change).max() > 1e-7 and "classifier" not in name:
            values = np.linalg.svd(change, compute_uv=False)
            left_out, norm = left_out + (values[2:] ** 2).sum(), norm + (values**2).sum()
            error = np.linalg.norm(tensor.numpy() - found[name].double().numpy())
            assert error == pytest.approx(np.sqrt((values[2:] ** 2).sum()), abs=1e-5)
        else:
            assert torch.allclose(found[name].double(), tensor, atol=1e-6)
    told = json.loads((tmp_path / "out" / "fuse.json").read_text())["lora"]
    assert (told["norm"], told["left_out"]) == pytest.approx((norm**0.5, left_out**0.5), rel=1e-4)
    card = (tmp_path / "out" / "README.md").read_text()
    assert f"{100 * (left_out / norm) ** 0.5:.2f} % is left out" in card
    assert "library_name: peft" in card


def test_peft_loads_a_mix_of_all_that_adapters_change(base: Bases, tmp_path: Path) -> None:
    """Biases, whole layers, an embedding, a convolution, and layers that only one of two changes."""
    for kind, options in {
        "bert": [
            {"target_modules": ["query", "word_embeddings"], "bias": "all", "task_type": "SEQ_CLS"},
            {"target_modules": ["value"], "modules_to_save": ["LayerNorm", "classifier"], "task_type": "SEQ_CLS"},
        ],
        "gpt2": [
            {"target_modules": ["c_attn"], "fan_in_fan_out": True, "task_type": "SEQ_CLS"},
            {"target_modules": ["c_proj"], "fan_in_fan_out": True, "use_dora": True, "task_type": "SEQ_CLS"},
        ],
        "roberta": [
            {"target_modules": ["query"], "task_type": "SEQ_CLS"},
            {"target_modules": ["key"], "task_type": "SEQ_CLS", "rank_pattern": {"0.attention.self.key": 3}},
        ],
        "vit": [
            {"target_modules": ["projection", "q_proj"], "modules_to_save": ["classifier"]},
            {"target_modules": "all-linear", "modules_to_save": ["layernorm"]},
        ],
    }.items():
        folders = {
            name: save_adapter(base(kind), tmp_path / kind / name, seed, r=2, **own)
            for seed, (name, own) in enumerate(zip("ab", options, strict=True))
        }
        out = tmp_path / kind / "out"
        fedfuse.fuse(folders, method="average", as_lora=True, rank=40, out=out)
        expected = average(base(kind), folders)
        assert same(merged_by_peft(base(kind), out), expected), kind
        assert same(dict(open_member(out).weights or {}), expected), kind


class TestFromTheBase:
    def test_task_arithmetic(self, base: Bases, five: Adapters, tmp_path: Path) -> None:
        fedfuse.fuse(five, method="task_arithmetic", merge={"scale": 0.7}, as_lora=True, rank=40, out=tmp_path / "out")
        found, before = merged_by_peft(base("encoder"), tmp_path / "out"), saved_by(classifier(base("encoder")))
        every = states(base("encoder"), five)
        for name, tensor in found.items():
            start = before[name].double().numpy()
            moved = start + 0.7 * sum(state[name] - start for state in every)
            if name.startswith("classifier"):  # the base has none
                moved = sum(state[name] for state in every) / 5
            assert np.allclose(tensor.numpy(), moved, atol=2e-6), name

    def test_dropping_nothing_changes_nothing(self, five: Adapters, tmp_path: Path) -> None:
        plain = fedfuse.fuse(five, method="task_arithmetic", out=tmp_path / "plain")
        dare = fedfuse.fuse(five, method="dare", merge={"density": 1.0}, out=tmp_path / "dare")
        one, other = (load_file(result.folder / "model.safetensors") for result in (plain, dare))
        assert same(one, other, 1e-7)

    @pytest.mark.parametrize("density", [1.0, 0.3])
    def test_ties(self, density: float, base: Bases, five: Adapters, tmp_path: Path) -> None:
        """Trim, elect, merge, over the numbers that some adapter changes."""
        fedfuse.fuse(five, method="ties", merge={"density": density}, out=tmp_path / "out")
        found = load_file(tmp_path / "out" / "model.safetensors")
        before = {name: tensor.double().numpy() for name, tensor in saved_by(classifier(base("encoder"))).items()}
        every = states(base("encoder"), five)
        names = [
            name
            for name in before
            if not name.startswith("classifier") and any((state[name] != before[name]).any() for state in every)
        ]
        moves = [np.concatenate([(state[name] - before[name]).ravel() for name in names]) for state in every]
        kept = []
        for move in moves:
            least = np.sort(np.abs(move))[::-1][max(1, round(density * len(move))) - 1]
            kept.append(np.where(np.abs(move) >= least, move, 0))
        sign = np.sign(sum(kept))
        agree = [np.where(np.sign(move) == sign, move, 0) for move in kept]
        count = sum((np.sign(move) == sign) & (move != 0) for move in kept)
        merged = sum(agree) / np.maximum(count, 1)
        expected = np.concatenate([before[name].ravel() for name in names]) + merged
        actual = np.concatenate([found[name].double().numpy().ravel() for name in names])
        differing = np.abs(actual - expected) > 1e-5
        assert differing.mean() < 0.002  # peft rounds to single precision before, which moves some over the edge
        assert np.abs(merged).max() > 0.1


def test_the_same_bytes_twice(five: Adapters, tmp_path: Path) -> None:
    for name in ("one", "other"):
        fedfuse.fuse(five, method="average", as_lora=True, rank=3, out=tmp_path / name)
    for file in ("adapter_model.safetensors", "adapter_config.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "other" / file).read_bytes()


def test_the_other_form_in_the_same_folder(five: Adapters, tmp_path: Path) -> None:
    for form, format in ((False, "Hugging Face"), (True, "LoRA adapter"), (False, "Hugging Face")):
        fedfuse.fuse(five, method="average", as_lora=form, out=tmp_path / "out", overwrite=True)
        assert open_member(tmp_path / "out").about.format == format


def test_a_student_is_written_as_its_change(base: Bases, five: Adapters, tmp_path: Path) -> None:
    texts = ["good film", "bad film", "very good", "very bad", "film", "bad bad"] * 4
    plan = {"steps": 3, "as_lora": True, "rank": 8, "batch_size": 8, "learning_rate": 1e-2}
    result = fedfuse.fuse({"a": five["a"], "c": five["c"]}, inputs=texts, out=tmp_path / "out", start="a", **plan)
    assert any("nothing is left out" in reason for reason in result.reasons)
    found = by_peft(base("encoder"), tmp_path / "out")
    tokens = transformers.AutoTokenizer.from_pretrained(base("encoder"))
    prepared = dict(tokens(TEXTS, padding=True, return_tensors="pt"))
    with torch.no_grad():
        assert close(found(**prepared).logits, result.network(prepared), 1e-4)
        assert not close(found(**prepared).logits, by_peft(base("encoder"), five["a"])(**prepared).logits, 1e-3)


def test_whole_models_become_an_adapter_of_their_base(base: Bases, tmp_path: Path) -> None:
    for seed, name in enumerate("ab"):
        folder = save_adapter(base("bert"), tmp_path / f"lora-{name}", seed, r=2, target_modules=["query"])
        network = by_peft(base("bert"), folder).merge_and_unload()
        network.save_pretrained(tmp_path / name)
        transformers.AutoTokenizer.from_pretrained(base("bert")).save_pretrained(tmp_path / name)
    models, out = {name: tmp_path / name for name in "ab"}, tmp_path / "out"
    result = fedfuse.fuse(models, method="average", base=base("bert"), as_lora=True, rank=4, out=out)
    assert any("nothing is left out" in reason for reason in result.reasons)
    expected = average(base("bert"), {name: tmp_path / f"lora-{name}" for name in "ab"})
    assert same(merged_by_peft(base("bert"), out), expected, 1e-5)


def test_an_adapter_and_a_whole_model(base: Bases, tmp_path: Path) -> None:
    adapter = save_adapter(base("bert"), tmp_path / "a", 1, r=2, target_modules=["query"], task_type="SEQ_CLS")
    fedfuse.fuse({"a": adapter, "b": base("bert")}, method="average", out=tmp_path / "out")
    before, after = saved_by(classifier(base("bert"))), merged_by_peft(base("bert"), adapter)
    expected = {name: (before[name] + after[name]) / 2 for name in before}
    assert same(load_file(tmp_path / "out" / "model.safetensors"), expected)


class TestMistakes:
    def test_adapters_of_other_bases(self, five: Adapters, tmp_path: Path) -> None:
        other = save_base("encoder", tmp_path / "other")
        tensors = load_file(other / "model.safetensors")
        tensors["pooler.dense.bias"] += 1
        save_file(tensors, other / "model.safetensors", {"format": "pt"})
        stranger = Path(shutil.copytree(five["b"], tmp_path / "stranger"))
        options: dict[str, Any] = {"method": "average", "about": {"stranger": {"base": other}}}
        with pytest.raises(ConfigError, match=r"stranger is an adapter of .*, which is another model"):
            fedfuse.fuse([five["a"], stranger], out=tmp_path / "out", **options)

    def test_adapters_of_other_classes(self, base: Bases, five: Adapters, tmp_path: Path) -> None:
        options = {"task_type": "SEQ_CLS", "r": 2, "target_modules": ["query"]}
        more = save_adapter(base("encoder"), tmp_path / "more", 1, classes=4, **options)
        with pytest.raises(ConfigError):
            fedfuse.fuse([five["a"], more], method="average", out=tmp_path / "out")

    def test_a_rank_without_an_adapter(self, five: Adapters, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="rank is that of a LoRA adapter"):
            fedfuse.fuse(five, method="average", rank=3, out=tmp_path / "out")
        with pytest.raises(ConfigError, match="rank: Input should be greater"):
            fedfuse.fuse(five, method="average", as_lora=True, rank=0, out=tmp_path / "out")

    def test_no_base(self, base: Bases, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="LoRA is written as the change from a base model"):
            fedfuse.fuse([base("bert"), base("bert")], method="average", as_lora=True, out=tmp_path / "out")

    def test_a_base_of_another_architecture(self, base: Bases, tmp_path: Path) -> None:
        options: dict[str, Any] = {"method": "average", "base": base("roberta"), "as_lora": True}
        with pytest.raises(ConfigError, match="is a RobertaForSequenceClassification, and no BertFor"):
            fedfuse.fuse([base("bert"), base("bert")], out=tmp_path / "out", **options)

    def test_numbers_that_grow_too_large(self, five: Adapters, tmp_path: Path) -> None:
        options: dict[str, Any] = {"method": "task_arithmetic", "merge": {"scale": 1e300}, "as_lora": True}
        with pytest.raises(DataError, match=r"not finite|not a finite number"):
            fedfuse.fuse(five, out=tmp_path / "out", **options)

    def test_a_row_without_length(self, five: Adapters, tmp_path: Path) -> None:
        """DoRA divides by it."""
        folder = Path(shutil.copytree(five["e"], tmp_path / "e"))
        member = open_member(folder)
        place = Path(member.about.base_model or "")
        other = Path(shutil.copytree(place, tmp_path / "base"))
        tensors = load_file(other / "model.safetensors")
        tensors["encoder.layer.0.attention.self.value.weight"][:] = 0
        save_file(tensors, other / "model.safetensors", {"format": "pt"})
        own = load_file(folder / "adapter_model.safetensors")
        for name in own:
            if "layer.0" in name and "lora_B" in name:
                own[name][:] = 0
        save_file(own, folder / "adapter_model.safetensors")
        with pytest.raises((ConfigError, DataError), match="not a finite number"):
            fedfuse.fuse([folder, folder], method="average", base=other, out=tmp_path / "out")

    def test_a_missing_base(self, five: Adapters, tmp_path: Path) -> None:
        with pytest.raises((ConfigError, DataError), match="is no folder of transformers; say where its base"):
            fedfuse.fuse(five, method="average", base=tmp_path / "nowhere", out=tmp_path / "out")


def test_the_command(five: Adapters, tmp_path: Path) -> None:
    models = [f"{name}={folder}" for name, folder in five.items()]
    options = ["--method", "average", "--as", "lora", "--rank", "2", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, ["fuse", *models, *options])
    assert result.exit_code == 0, result.output
    assert "written as LoRA of rank 2" in result.output
    assert "% is left out" in result.output
    assert json.loads((tmp_path / "out" / "adapter_config.json").read_text())["r"] == 2
