"""Datasets of the Hugging Face hub, or of a local folder in its layout, through the optional package ``datasets``."""

from __future__ import annotations

import os
import socket
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from fedfuse.core.errors import DataError, MissingExtraError
from fedfuse.data.cache import cached
from fedfuse.data.readers.contents import Contents, Found, Reading
from fedfuse.data.readers.table import TableRows, contents_of_rows, find_label_column, without_ignored


def read_hub(name: str, reading: Reading, validation: bool = False) -> Found:
    """The ``train`` split of a dataset, its test split if it has one, and its validation split if that is asked for."""
    splits = _load(name)
    for needed in ("train", *(("validation",) if validation else ())):
        if needed not in splits:
            raise DataError(f"hf:{name} has no split '{needed}'; its splits are: {', '.join(splits)}")
    wanted = ("train", "test", "validation") if validation else ("train", "test")
    parts = {part: _contents(splits[part], reading, f"hf:{name} ({part})") for part in wanted if part in splits}
    return Found(parts["train"], parts.get("test"), f"hf:{name}", parts.get("validation"))


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


def _contents(split: Any, reading: Reading, where: str) -> Contents:
    files = [Path(entry["filename"]) for entry in split.cache_files]
    read = partial(_decode, split, reading, where)
    # A split that lives in memory has no files to recognise it by.
    return cached(files, reading, read) if files else read()


def _decode(split: Any, reading: Reading, where: str) -> Contents:
    table = split.with_format("arrow")[:]
    table = table.select(without_ignored(table.schema, reading, where).names)
    names = getattr(split.features[find_label_column(table.schema, reading, where)], "names", None)
    return contents_of_rows(TableRows(table), None if names is None else tuple(names), reading, where, None)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
