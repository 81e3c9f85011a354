"""Labels that are words or truth values become numbers; their names stay with them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fedfuse.core.errors import DataError
from fedfuse.data.readers.contents import Array

ORIGIN = "data from Python"
"""What errors and logs call it."""


def numbered(labels: Mapping[str, Array]) -> tuple[dict[str, Array], tuple[str, ...] | None]:
    """Each split's labels as numbers, and the names of the classes, which are the training examples' in their order.

    Labels that are numbers stay as they are and have no names.
    """
    if labels["train"].dtype.kind not in "bU":
        return dict(labels), None
    names = np.unique(labels["train"])
    return {split: _places(array, names, split) for split, array in labels.items()}, tuple(map(str, names))


def _places(array: Array, names: Array, split: str) -> Array:
    strange = array[~np.isin(array, names)]
    if len(strange):
        raise DataError(f"data.{split} has the label '{strange[0]}', which no training example has")
    return np.searchsorted(names, array)
