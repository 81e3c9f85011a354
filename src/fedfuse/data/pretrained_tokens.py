"""A pre-trained encoder's own tokenizer, through the optional package ``transformers``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedfuse.core.errors import ConfigError, DataError, MissingExtraError
from fedfuse.core.imports import first_line
from fedfuse.core.paths import expanded
from fedfuse.core.text import PADDING
from fedfuse.data.hub import network_may_answer
from fedfuse.data.tokens import BUILT_IN, EMPTY, TextSettings, Tokenizer


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


def check_encoder(settings: TextSettings, encoder: str, where: str) -> None:
    """Refuse texts in other numbers than those that an encoder was pre-trained on; ``where`` names it in the file.

    A tokenizer from another place is as good as the encoder's own if it has the same numbers for the same tokens.
    """
    chosen = settings.tokenizer
    if chosen in BUILT_IN or (_place(chosen) != _place(encoder) and _numbers(chosen) != _numbers(encoder, where)):
        raise ConfigError(
            f"{where} was pre-trained on the tokens of {encoder}, but data.text.tokenizer is {chosen}, which numbers "
            f"them in another way; set it to {encoder}"
        )


def _numbers(name: str, where: str = "data.text.tokenizer") -> dict[str, int]:
    numbers: dict[str, int] = _load(name, where).get_vocab()
    return numbers


def _place(name: str) -> Path | str:
    """The folder, if it is one, or the name on the hub."""
    folder = expanded(name, "data.text.tokenizer")
    return folder.resolve() if folder.is_dir() else name


def _load(name: str, where: str = "data.text.tokenizer") -> Any:
    try:
        import transformers
    except ImportError as error:
        raise MissingExtraError(f"{where} = {name}", "text") from error
    place = _place(name)
    if isinstance(place, str) and not network_may_answer():
        raise DataError(
            f"{where}: {name} is neither words nor bytes nor a local folder, and the Hugging Face hub "
            "cannot be reached; connect to a network, or set HF_HUB_OFFLINE=1 if it was downloaded before"
        )
    try:
        return transformers.AutoTokenizer.from_pretrained(place)
    except Exception as error:  # the package raises its own, its HTTP client's and the file system's errors
        raise DataError(f"{where}: the tokenizer {name} could not be loaded ({first_line(error)})") from error


def _fingerprint(inner: Any) -> str:
    content = (type(inner).__name__, sorted(inner.get_vocab().items()), sorted(inner.init_kwargs.items(), key=str))
    return hashlib.sha256(repr(content).encode()).hexdigest()
