"""Raw texts: strings."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import torch
from torch import Tensor

from fedfuse.catalogue.card import Normalisation
from fedfuse.core.errors import DataError
from fedfuse.core.text import PADDING, TextShape
from fedfuse.data.pretrained_tokens import Pretrained
from fedfuse.data.raw.base import RawInputs
from fedfuse.data.tokens import BUILT_IN, TextSettings, Tokenizer, tokenizer_of
from fedfuse.data.transform import Transform


class RawTexts(RawInputs):
    """Strings, which a tokenizer numbers; a pre-trained one is named, and recognised by its ``sha256``."""

    kind: Literal["texts"] = "texts"
    text: TextSettings
    sha256: str | None = None

    @staticmethod
    def of(tokenizer: Tokenizer, settings: TextSettings) -> RawTexts:
        """The settings with what they leave open."""
        if isinstance(tokenizer, Pretrained):
            return RawTexts(text=settings, sha256=tokenizer.sha256)
        numbers = tokenizer.vocabulary if settings.tokenizer == "words" else None
        return RawTexts(text=settings.model_copy(update={"vocabulary": numbers}))

    def read(self, raw: Any, shape: tuple[int, ...]) -> Tensor:
        texts = [raw] if isinstance(raw, str) else list(raw)
        for position, text in enumerate(texts):
            if not isinstance(text, str):
                raise DataError(f"input {position} is of type {type(text).__name__}; the model reads texts (str)")
        return torch.from_numpy(_tokenizer(self)(texts))

    def made_up(self, count: int, shape: tuple[int, ...], random: torch.Generator) -> Tensor:
        """Texts of different lengths."""
        length, vocabulary = shape
        tokens = torch.randint(1, vocabulary, (count, length), dtype=torch.int32, generator=random)
        lengths = torch.randint(1, length + 1, (count, 1), generator=random)
        return torch.where(torch.arange(length) < lengths, tokens, PADDING)

    def transform(self, shape: tuple[int, ...]) -> Transform:
        return Transform(Normalisation((), ()), shape)

    def in_words(self, shape: tuple[int, ...]) -> str:
        return f"texts of up to {self.text.max_length} tokens ({self.text.tokenizer})"

    def check(self, shape: tuple[int, ...]) -> None:
        if not isinstance(shape, TextShape) or shape.length != self.text.max_length:
            raise ValueError(f"texts of {self.text.max_length} tokens do not fit inputs of {tuple(shape)}")
        if self.text.tokenizer in BUILT_IN and _tokenizer(self).vocabulary != shape.vocabulary:
            raise ValueError(f"the tokenizer's numbers are not those of a network that knows {shape.vocabulary}")


@lru_cache(maxsize=8)
def _tokenizer(texts: RawTexts) -> Tokenizer:
    tokenizer = tokenizer_of(texts.text)
    if isinstance(tokenizer, Pretrained) and tokenizer.sha256 != texts.sha256:
        raise DataError(
            f"the tokenizer {tokenizer.name} is not the one that the model was trained with; put that one in its place"
        )
    return tokenizer
