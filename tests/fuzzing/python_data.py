"""Arrays, lists and tables that Python gives as data."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch

from fedfuse.core.randomness import Key
from fedfuse.data import load
from fedfuse.data.given import memory
from fedfuse.experiment.config import merge, validate
from tests.fuzzing.experiment_values import SMALL
from tests.fuzzing.mutation import value_of
from tests.fuzzing.parquet_files import NAMES, known_columns

LABELS = np.array([0, 1, 2, 0, 1, 2])
X = np.arange(12, dtype=np.float32).reshape(6, 2)
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": LABELS})
ARRAYS: tuple[Any, ...] = (
    X,
    LABELS,
    X[:3],
    X[0],
    np.float64(1),
    np.zeros((6, 0)),
    np.zeros((0, 2)),
    np.zeros((6, 3, 4, 4), np.uint8),
    np.zeros((6, 2, 4, 4), np.uint8),
    np.array([2**64 - 1] * 6, np.uint64),
    np.array([10**9] * 6),
    np.array(["a", "b"] * 3),
    np.array([b"a", b"b"] * 3),
    np.array([None, "b"] * 3, dtype=object),
    np.array([np.nan] * 6),
    np.array(["2024-01-01"] * 6, "M8[D]"),
    np.ones(6, complex),
    np.ones(6, bool),
    np.zeros(6, [("a", "f4")]),
    [[1, 2], [3]],
    ["\ud800", "a"],
    torch.zeros(6, 2, dtype=torch.bfloat16),
    torch.arange(6) % 2,
    torch.zeros(6, 2).to_sparse(),
    FRAME,
    pa.table({"a": X[:, 0], "label": LABELS}),
    "digits",
)


def honest() -> list[Any]:
    return [
        (X, LABELS),
        {"train": (X, LABELS), "test": (X, LABELS), "clients": ["a", "b", "c"] * 2},
        {"train": (np.array(["a text"] * 6), np.array(["yes", "no"] * 3)), "public": np.array(["more"])},
        {"train": FRAME, "test": FRAME, "ignore_columns": ["a"]},
        (X.tolist(), LABELS.tolist()),
    ]


def mutate(rng: Random, case: Any) -> Any:
    if rng.random() < 0.7:
        return value_of(rng, case, ARRAYS * 2)
    known = known_columns()
    columns = {rng.choice(NAMES): rng.choice(list(known.values())) for _ in range(3)}
    return {"train": pa.table({**columns, "label": known[rng.choice(list(known))]})}


def read(case: Any) -> None:
    memory._held.clear()
    load(validate(merge(SMALL, {"data": case})).data, Key(0))
