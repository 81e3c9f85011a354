"""Datasets of the Hugging Face hub, or of a local folder in its layout, through the optional package ``datasets``."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from fedfuse.core.errors import DataError, MissingExtraError
from fedfuse.data.cache import cached
from fedfuse.data.own_files import as_surveyed
from fedfuse.data.readers.columns import find_label_column, without_ignored
from fedfuse.data.readers.contents import Contents, Found, Reading
from fedfuse.data.readers.survey import surveyed
from fedfuse.data.readers.table import Table, contents_of_tables


def read_hub(name: str, reading: Reading, validation: bool = False) -> Found:
    """The ``train`` split of a dataset, its test split if it has one, and its validation split if that is asked for."""
    splits = _load(name)
    for needed in ("train", *(("validation",) if validation else ())):
        if needed not in splits:
            raise DataError(f"hf:{name} has no split '{needed}'; its splits are: {', '.join(splits)}")
    tables = {part: _Split(splits[part], f"hf:{name} ({part})") for part in splits}
    train = tables["train"].contents(reading, is_first=True)
    told = as_surveyed(reading, train)
    others = [part for part in ("test", *(("validation",) if validation else ())) if part in splits]
    return Found.by_split({"train": train, **{part: tables[part].contents(told) for part in others}}, f"hf:{name}")


def _load(name: str) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError(f"data.name = hf:{name}", "hub") from error
    if not Path(name).is_dir() and not network_may_answer():
        raise DataError(
            f"hf:{name} is not a local folder and the Hugging Face hub cannot be reached; "
            "connect to a network, or set HF_HUB_OFFLINE=1 if it was downloaded before"
        )
    try:
        return datasets.load_dataset(name)
    except Exception as error:  # the package raises its own, its HTTP client's and the file system's errors
        raise DataError(
            f"hf:{name} could not be loaded ({_first_line(error)}); "
            "check the name and the network, or give a local folder of parquet files"
        ) from error


def network_may_answer() -> bool:
    """False only when it surely does not, because the package itself tries for half a minute before it says so."""
    if os.environ.get("HF_HUB_OFFLINE") or os.environ.get("HF_DATASETS_OFFLINE") or getproxies():
        return True
    host = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co")).hostname
    try:
        socket.getaddrinfo(host, 443)
    except OSError:
        return False
    return True


@dataclass(frozen=True)
class _Split:
    """A part of a dataset."""

    split: Any
    name: str

    def contents(self, reading: Reading, is_first: bool = False) -> Contents:
        """Of the first one it is found out how all of them are read."""

        def read() -> Contents:
            table = self._table(reading)
            return contents_of_tables([table], surveyed([table], reading) if is_first else reading)

        files = [Path(entry["filename"]) for entry in self.split.cache_files]
        # A split that lives in memory has no files to recognise it by.
        return cached(files, reading, read) if files else read()

    def _table(self, reading: Reading) -> Table:
        table = self.split.with_format("arrow")[:]
        table = table.select(without_ignored(table.schema, reading, self.name).names)
        names = getattr(self.split.features[find_label_column(table.schema, reading, self.name)], "names", None)
        return Table.of(table, self.name, class_names=None if names is None else tuple(names))


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
