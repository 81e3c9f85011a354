"""Small models of other programs as the files that hold them, and what is asked of one that was read."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import torch

from fedfuse.core.errors import FedfuseError
from fedfuse.fusing.answers import ask
from fedfuse.fusing.classes import common_classes
from fedfuse.fusing.members import Member, open_member
from tests.fuzzing.checkpoint import as_json
from tests.fuzzing.mutation import bytes_of, text_of, value_of
from tests.fuzzing.place import place

os.environ.setdefault("HF_HUB_OFFLINE", "1")
Files = Mapping[str, bytes]
"""By their names in a folder."""
CANARY = "fuzzing-canary"
"""A file that code in a model would leave behind if it were run."""
HOSTILE: tuple[Any, ...] = (
    {"AutoModel": "evil.Evil", "AutoConfig": "evil.Evil", "AutoTokenizer": ["evil.Evil", None]},
    "evil.Evil",
    "../../../../etc/passwd",
    "/etc/passwd",
    "model.safetensors",
    "os:system",
    10**9,
    10**12,
    [10**6, 10**6],
    "<script>alert(1)</script>",
    True,
)


def in_files(save: Callable[[Path], object]) -> dict[str, bytes]:
    """What is saved into a folder."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save(Path(folder))
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir()) if path.is_file()}


def damaged(rng: Random, case: Files, others: tuple[Any, ...] = HOSTILE) -> Files:
    """One of the files is another one, is gone, or is there twice; JSON is changed as what it says."""
    name = rng.choice([name for name in case for _ in range(1 if name.endswith(".safetensors") else 3)])
    match rng.randrange(12):
        case 0:
            return {other: content for other, content in case.items() if other != name}
        case 1:
            return {**case, name: case[rng.choice(list(case))]}
        case 2:
            return {**case, name: b""}
        case 3 | 4 | 5:
            return {**case, name: bytes_of(rng, case[name])}
        case 6 if not name.endswith(".safetensors"):
            return {**case, name: text_of(rng, case[name].decode("utf-8", "replace")).encode("utf-8", "surrogatepass")}
        case _:
            return {**case, name: _changed(rng, case[name], others)}


def _changed(rng: Random, content: bytes, others: tuple[Any, ...]) -> bytes:
    import json

    try:
        value = json.loads(content)
    except ValueError:
        return bytes_of(rng, content)
    keys = ("auto_map", "trust_remote_code", "architectures", "model_type", "_name_or_path", "quantization_config")
    is_more = rng.random() < 0.25 and isinstance(value, dict)
    value = {**value, rng.choice(keys): rng.choice(others)} if is_more else value_of(rng, value, others)
    return json.dumps(as_json(value)).encode("utf-8", "surrogatepass")


def folder_of(case: Files) -> Path:
    """The files in a folder of their own, beside one with code that must never run."""
    folder = place("model")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in case.items():
        (folder / name).write_bytes(content)
    (folder / "evil.py").write_text(f"open({str(place(CANARY))!r}, 'w')\nclass Evil: pass\n", encoding="utf-8")
    return folder


def opened_and_asked(path: Path, **about: Any) -> None:
    """Open a model, ask it about two inputs and merge its classes; nothing of it is run as Python."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stderr(nowhere), redirect_stdout(nowhere):
        try:
            member = open_member(path, **about)
            _asked(member)
        finally:
            assert not place(CANARY).exists(), "code of the model was run"


def _asked(member: Member) -> None:
    about = member.about
    classes = common_classes([about])
    assert all(classes.remarks)
    if member.weights is not None:
        assert all(isinstance(name, str) for name in member.weights)
    ask([member], _inputs(about.reads, about.shape), classes, place("answers"))
    shutil.rmtree(place("answers"))


def _inputs(reads: str, shape: tuple[int, ...] | None) -> Any:
    if reads == "texts":
        return ["good film", "very bad"]
    if reads == "numbers":
        if shape is not None and shape[0] > 10_000:
            raise FedfuseError("nobody has inputs with so many columns")
        return torch.zeros(2, shape[0] if shape else 4)
    return torch.zeros(2, 3, 8, 8, dtype=torch.uint8)


@cache
def vit() -> Files:
    import transformers

    config = transformers.ViTConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, image_size=8, patch_size=4,
        id2label={0: "cat", 1: "dog", 2: "owl"}, label2id={"cat": 0, "dog": 1, "owl": 2},
    )  # fmt: skip

    def save(folder: Path) -> None:
        transformers.ViTForImageClassification(config).save_pretrained(folder)
        (folder / "README.md").write_text("---\nlicense: mit\nbase_model: [a, b]\n---\n# A model\n", encoding="utf-8")
        (folder / "preprocessor_config.json").write_text(
            '{"image_processor_type": "ViTImageProcessor", "do_resize": true, "size": {"height": 8, "width": 8}, '
            '"resample": 2, "do_rescale": true, "rescale_factor": 0.00392, "do_normalize": true, '
            '"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}',
            encoding="utf-8",
        )

    return in_files(save)


@cache
def bert() -> Files:
    import transformers

    from tests.fusing.members.conftest import WORDS, tokenizer

    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
        max_position_embeddings=12, num_labels=2,
    )  # fmt: skip

    def save(folder: Path) -> None:
        transformers.BertForSequenceClassification(config).save_pretrained(folder)
        tokenizer(transformers, WORDS).save_pretrained(folder)

    return in_files(save)


@cache
def sharded() -> Files:
    """A folder whose weights lie in two files, with an index."""
    import json

    from safetensors.torch import load, save

    files = dict(vit())
    tensors = load(files.pop("model.safetensors"))
    names = list(tensors)
    parts = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    for file, own in parts.items():
        files[file] = save({name: tensors[name].contiguous() for name in own})
    index = {"metadata": {"total_size": 1}, "weight_map": {name: file for file, own in parts.items() for name in own}}
    return {**files, "model.safetensors.index.json": json.dumps(index).encode()}
