"""Tables in Parquet."""

from __future__ import annotations

import datetime
import io
import json
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzzing.image_folders import honest as images
from tests.fuzzing.mutation import bytes_of
from tests.fuzzing.place import written
from tests.fuzzing.tables import load_file

ROWS = 6
METADATA = (
    "{}",
    "[" * 100_000,
    '{"info": {"features": {"label": {"names": 5}}}}',
    '{"columns": [{"name": [], "pandas_type": "categorical"}, 5]}',
    "\xff",
)
NAMES = ("label", "y", "image", "img", "text", "features", "x", "who", "a", "sex", "")


def known_columns() -> dict[str, Any]:
    """Of every type that may meet a reader, all of them of the same length."""
    encoded, paths = images()[0], ("../secret.png", "/etc/passwd", "a.png", "\0", "", None)
    struct = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return {
        "labels": pa.array([0, 1, 2, 0, 1, 2]),
        "huge labels": pa.array([0, 1, 2, 0, 1, 2**63 - 1]),
        "unsigned labels": pa.array([0, 1, 2, 0, 1, 2**64 - 1], pa.uint64()),
        "missing labels": pa.array([0, 1, None, 0, 1, 2]),
        "words": pa.array(["yes", "no", "yes", "no", "yes", None]),
        "texts": pa.array([f"text {row}" for row in range(ROWS)]),
        "large texts": pa.array([f"text {row}" for row in range(ROWS)], pa.large_string()),
        "numbers": pa.array(np.linspace(0, 1, ROWS)),
        "not finite": pa.array([0.0, 1.0, float("nan"), float("inf"), 1e300, -0.0]),
        "truths": pa.array([True, False] * 3),
        "days": pa.array([datetime.date(2024, 1, 1)] * ROWS),
        "money": pa.array([Decimal("1.5")] * ROWS),
        "nothing": pa.nulls(ROWS),
        "lists": pa.array([[1.0, 2.0]] * ROWS),
        "ragged": pa.array([[1.0, 2.0]] * 5 + [[1.0]]),
        "missing lists": pa.array([None, *[[1.0, 2.0]] * 5]),
        "empty lists": pa.array([[]] * ROWS, pa.list_(pa.float32())),
        "holes": pa.array([[1.0, None]] * ROWS),
        "fixed": pa.array([[1, 2]] * ROWS, pa.list_(pa.int8(), 2)),
        "nested": pa.array([[[1.0]]] * ROWS),
        "images": pa.array([{"bytes": encoded, "path": None}] * ROWS, struct),
        "plain images": pa.array([encoded] * ROWS),
        "files": pa.array([{"bytes": None, "path": path} for path in paths], struct),
        "odd images": pa.array([{"bytes": encoded, "path": 5}] * ROWS),
        "categories": pa.array(["a", "b"] * 3).dictionary_encode(),
        "numbers as categories": pa.array([1, 2] * 3).dictionary_encode(),
        "nothing as categories": pa.array([None] * ROWS, pa.string()).dictionary_encode(),
        "from 1": pa.array([1, 2] * 3),
        "numbers in words": pa.array(["1", "2"] * 3),
        "views": pa.array(["a", "b"] * 3).cast(pa.string_view()),
        "gaps": pa.array([1.0, None, 3.0, None, 5.0, 6.0]),
        "times": pa.array([datetime.datetime(2024, 1, 1)] * ROWS),
        "halves": pa.array(np.ones(ROWS, np.float16)),
    }


def honest() -> list[bytes]:
    known = known_columns()
    names = json.dumps({"info": {"features": {"label": {"names": ["a", "b", "c"]}}}})
    tables = [
        pa.table({"image": known["images"], "label": known["labels"]}).replace_schema_metadata({"huggingface": names}),
        pa.table({"image": known["plain images"], "label": known["labels"]}),
        pa.table({"text": known["texts"], "label": known["labels"]}),
        pa.table({"features": known["lists"], "label": known["labels"], "who": known["truths"]}),
        pa.table({"a": known["numbers"], "b": known["fixed"], "label": known["labels"]}),
        pa.table({"a": known["numbers"], "sex": known["categories"], "b": known["truths"], "label": known["from 1"]}),
    ]
    return [_saved(table) for table in tables]


def _saved(table: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def mutate(rng: Random, case: bytes) -> bytes:
    """Half of the time a sound file of columns that do not fit each other."""
    if rng.random() < 0.5:
        return bytes_of(rng, case)
    known = known_columns()
    chosen = [(rng.choice(NAMES), rng.choice(list(known.values()))) for _ in range(rng.randrange(4))]
    chosen.append(
        ("label", known[rng.choice(("labels", "labels", "labels", "huge labels", "words", "unsigned labels", *known))])
    )
    rng.shuffle(chosen)
    table = pa.Table.from_arrays([column for _, column in chosen], [name for name, _ in chosen])
    metadata = rng.choice(METADATA)
    if rng.random() < 0.2:
        table = table.replace_schema_metadata({rng.choice(("huggingface", "pandas")): metadata})
    return _saved(
        table.slice(rng.choice((0, 0, 0, 3, ROWS))), compression=rng.choice(("none", "snappy", "zstd", "gzip"))
    )


def read(case: bytes) -> None:
    load_file("parquet", written("table.parquet", case), empty_cells="fill" if b"sex" in case else "refuse")
