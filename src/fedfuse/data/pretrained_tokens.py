"""A pre-trained encoder's own tokenizer, through the optional package ``transformers``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedfuse.core.errors import DataError, MissingExtraError
from fedfuse.core.imports import first_line
from fedfuse.core.text import PADDING
from fedfuse.data.hub import network_may_answer
from fedfuse.data.tokens import EMPTY, Tokenizer


@dataclass(frozen=True)
class Pretrained(Tokenizer):
    """A tokenizer of ``transformers`` with its special tokens, recognised by its ``sha256``."""

    name: str
    sha256: str
    inner: Any = field(repr=False, compare=False)

    @property
    def vocabulary(self) -> int:
        return len(self.inner)

    def numbers(self, texts: Sequence[str]) -> Iterable[Sequence[int]]:
        rows = self.inner(list(texts), truncation=True, max_length=self.max_length)["input_ids"]
        unknown = self.inner.unk_token_id or EMPTY
        # A text may hold the very word that stands for padding, and a mask that is read off the numbers would cut it.
        return ([unknown if number == PADDING else number for number in row] for row in rows)


def pretrained(name: str, max_length: int) -> Pretrained:
    """The tokenizer in a folder, or of this name on the Hugging Face hub."""
    inner = _load(name)
    if inner.pad_token_id != PADDING:
        raise DataError(
            f"data.text.tokenizer: {name} pads with number {inner.pad_token_id}; only tokenizers that pad with "
            f"{PADDING}, such as BERT's and DistilBERT's, can be used"
        )
    return Pretrained(max_length, name, _fingerprint(inner), inner)


def _load(name: str) -> Any:
    try:
        import transformers
    except ImportError as error:
        raise MissingExtraError(f"data.text.tokenizer = {name}", "text") from error
    if not Path(name).expanduser().is_dir() and not network_may_answer():
        raise DataError(
            f"data.text.tokenizer: {name} is neither words nor bytes nor a local folder, and the Hugging Face hub "
            "cannot be reached; connect to a network, or set HF_HUB_OFFLINE=1 if it was downloaded before"
        )
    try:
        return transformers.AutoTokenizer.from_pretrained(Path(name).expanduser() if Path(name).exists() else name)
    except Exception as error:  # the package raises its own, its HTTP client's and the file system's errors
        raise DataError(f"data.text.tokenizer: {name} could not be loaded ({first_line(error)})") from error


def _fingerprint(inner: Any) -> str:
    content = (type(inner).__name__, sorted(inner.get_vocab().items()), sorted(inner.init_kwargs.items(), key=str))
    return hashlib.sha256(repr(content).encode()).hexdigest()
