"""Inputs as they are before any model has had its way with them: every member and the student prepare them anew."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from fedfuse.data.dataset import InputKind

Raw = Tensor | Sequence[str]
"""Images: uint8, N x C x H x W, all of one size. Numbers: float32, N x D. Texts: strings."""


def kind_of_raw(raw: Raw) -> InputKind:
    """What they are."""
    if not isinstance(raw, Tensor):
        return "texts"
    return "numbers" if raw.is_floating_point() else "images"


def rows_of(raw: Raw, where: slice | Tensor) -> Raw:
    """Some of them, in this order."""
    if isinstance(raw, Tensor):
        return raw[where]
    places = range(len(raw))[where] if isinstance(where, slice) else where.tolist()
    return [raw[place] for place in places]
