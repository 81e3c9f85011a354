"""Texts to token numbers: the tokenizers that need no package, and the settings that choose one.

Every party of a federation must number tokens alike, and a list of the words that occur would tell about the texts it
was made from. So ``words`` has no list: a word's number is its hash, the same on every machine and in every run.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fedfuse.core.part import Settings
from fedfuse.core.text import PADDING

EMPTY = 1
"""Stands for a text without a single token, so that no row is all padding."""
FIRST = 2
"""The smallest number of a token that says something."""
VOCABULARY = 10_000
WORD = re.compile(r"\w+|[^\w\s]")


class TextSettings(Settings):
    """How texts become numbers; the same for all parties and for the source."""

    tokenizer: str = Field(
        "words",
        min_length=1,
        description="words (hashed, no vocabulary to share), bytes (of UTF-8), or the folder or name of a tokenizer of "
        "transformers whose padding is number 0",
    )
    max_length: int = Field(64, ge=1, le=4096, description="tokens of a text that are kept, from its beginning")
    vocabulary: int | None = Field(
        None, ge=3, le=10_000_000, description=f"of words: how many numbers they share; {VOCABULARY} if not given"
    )
    lower: bool = Field(True, description="of words and bytes: upper and lower case are the same")

    @model_validator(mode="after")
    def _only_what_applies(self) -> TextSettings:
        if self.vocabulary is not None and self.tokenizer != "words":
            raise ValueError(f"vocabulary is for words; tokenizer {self.tokenizer} has its own, so remove it")
        if not self.lower and self.tokenizer not in BUILT_IN:
            raise ValueError(f"lower is for words and bytes; tokenizer {self.tokenizer} decides itself, so remove it")
        return self


@dataclass(frozen=True)
class Tokenizer(ABC):
    """Texts to one int32 row of ``max_length`` numbers each; its repr says all that its numbers depend on."""

    max_length: int

    @property
    @abstractmethod
    def vocabulary(self) -> int:
        """All numbers are below this one."""

    @abstractmethod
    def numbers(self, texts: Sequence[str]) -> Iterable[Sequence[int]]:
        """The numbers of each text, none of them ``PADDING``; those beyond ``max_length`` are cut off."""

    def __call__(self, texts: Sequence[str]) -> NDArray[np.int32]:
        table = np.full((len(texts), self.max_length), PADDING, np.int32)
        for row, numbers in zip(table, self.numbers(texts), strict=True):
            kept = numbers[: self.max_length] or (EMPTY,)
            row[: len(kept)] = kept
        return table


@dataclass(frozen=True)
class Words(Tokenizer):
    """Runs of letters and digits, and every other sign by itself, numbered by their hash."""

    size: int
    lower: bool

    @property
    def vocabulary(self) -> int:
        return self.size

    def numbers(self, texts: Sequence[str]) -> Iterable[Sequence[int]]:
        known: dict[str, int] = {}
        for text in texts:
            words = WORD.findall(text.lower() if self.lower else text)
            for word in words:
                if word not in known:
                    known[word] = self._number(word)
            yield [known[word] for word in words]

    def _number(self, word: str) -> int:
        digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return FIRST + int.from_bytes(digest, "little") % (self.size - FIRST)


@dataclass(frozen=True)
class Bytes(Tokenizer):
    """The bytes of a text's UTF-8."""

    lower: bool

    @property
    def vocabulary(self) -> int:
        return FIRST + 256

    def numbers(self, texts: Sequence[str]) -> Iterable[Sequence[int]]:
        for text in texts:
            encoded = (text.lower() if self.lower else text).encode("utf-8", "surrogatepass")
            yield [FIRST + byte for byte in encoded[: self.max_length]]


BUILT_IN = ("words", "bytes")


def tokenizer_of(settings: TextSettings) -> Tokenizer:
    """The tokenizer that the settings name."""
    if settings.tokenizer == "words":
        return Words(settings.max_length, settings.vocabulary or VOCABULARY, settings.lower)
    if settings.tokenizer == "bytes":
        return Bytes(settings.max_length, settings.lower)
    from fedfuse.data.pretrained_tokens import pretrained

    return pretrained(settings.tokenizer, settings.max_length)
