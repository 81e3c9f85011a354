"""The tokenizer of a folder: texts to what its network is called with."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from fedfuse.core.errors import DataError
from fedfuse.fusing.members.files import in_brief, read_json
from fedfuse.fusing.members.huggingface.folder import TOKENIZER, TOKENIZER_FILES, Folder
from fedfuse.fusing.members.huggingface.network import transformers_for

LONGEST = 512
"""Tokens, where neither the tokenizer nor the network says how many it reads."""
COUNTED_FROM_PADDING = frozenset(
    {"roberta", "xlm-roberta", "camembert", "roberta-prelayernorm", "xlm-roberta-xl", "mpnet"}
)
"""Types of networks whose first positions are behind the number of padding, so that two places are lost."""


@dataclass(frozen=True)
class Tokens:
    """Texts as numbers, padded to the longest of those that are given together."""

    inner: Any
    longest: int

    def __call__(self, texts: Sequence[str]) -> dict[str, Tensor]:
        return dict(
            self.inner(list(texts), truncation=True, max_length=self.longest, padding=True, return_tensors="pt")
        )

    @property
    def fingerprint(self) -> str:
        """The same for two tokenizers that have the same numbers for the same tokens."""
        content = sorted(self.inner.get_vocab().items()), sorted(map(str, self.inner.all_special_tokens))
        return hashlib.sha256(repr(content).encode()).hexdigest()

    def write(self, folder: Path) -> None:
        self.inner.save_pretrained(folder)


def tokens_of(folder: Folder) -> Tokens:
    """From the folder alone: nothing is fetched, and no code of the folder is run."""
    transformers = transformers_for(f"the tokenizer of {folder.path}")
    settings = folder.path / TOKENIZER
    if settings.exists() and "auto_map" in read_json(settings):
        raise DataError(f"{settings} asks for code of its own, which is never run")
    if not any((folder.path / name).is_file() for name in TOKENIZER_FILES):
        raise DataError(f"{folder.path} holds no tokenizer (tokenizer.json); save it beside the model")
    try:
        inner = transformers.AutoTokenizer.from_pretrained(folder.path, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # the package raises its own, and those of the tokenizer's format
        raise DataError(f"{folder.path}: its tokenizer cannot be loaded ({in_brief(error)})") from None
    known = folder.config.get("vocab_size")
    if isinstance(known, int) and max(inner.get_vocab().values(), default=0) >= known:
        raise DataError(
            f"{folder.path}: the tokenizer has numbers up to {max(inner.get_vocab().values())}, but the network knows "
            f"{known} tokens; the two do not belong together"
        )
    _pad(inner, folder)
    return Tokens(inner, _longest(inner, folder))


def _pad(inner: Any, folder: Folder) -> None:
    """Give a tokenizer that knows no padding the number that the network takes for it, or the text's end."""
    if inner.pad_token is not None:
        return
    number = folder.config.get("pad_token_id")
    token = inner.convert_ids_to_tokens(number) if isinstance(number, int) else inner.eos_token
    if token is None:
        raise DataError(f"{folder.path}: neither its tokenizer nor its network knows a padding; add a pad_token")
    inner.pad_token = token


def _longest(inner: Any, folder: Folder) -> int:
    positions = folder.config.get("max_position_embeddings")
    lost = 2 if folder.config.get("model_type") in COUNTED_FROM_PADDING else 0
    limits = [
        limit
        for limit in (inner.model_max_length, positions - lost if isinstance(positions, int) else None)
        if isinstance(limit, int) and 0 < limit < 1_000_000
    ]
    return min(limits, default=LONGEST)
