"""Tiny files in the formats that users bring, and a cache that no test shares."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from .samples import WriteParquet


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("FEDFUSE_CACHE", str(folder))
    monkeypatch.setenv("HF_HUB_CACHE", str(folder / "hugging-face"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return folder


@pytest.fixture
def write_parquet(tmp_path: Path) -> WriteParquet:
    """Images in the convention of Hugging Face ``datasets``."""

    def write(
        encoded: Sequence[bytes | None],
        labels: Sequence[int],
        names: Sequence[str] | None = ("a", "b", "c"),
        file: str = "train.parquet",
        label_column: str = "label",
    ) -> Path:
        table = pa.table(
            {
                "image": pa.array(
                    [{"bytes": image, "path": None} for image in encoded],
                    pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
                ),
                label_column: pa.array(labels),
            }
        )
        if names is not None:
            features = {"image": {"_type": "Image"}, label_column: {"names": list(names), "_type": "ClassLabel"}}
            metadata = json.dumps({"info": {"features": features}})
            table = table.replace_schema_metadata({b"huggingface": metadata.encode()})
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)
        return path

    return write
