"""Parquet files of the Hugging Face hub, fetched over the network.

A fetched file is streamed into fedfuse's own cache, compared with the hub's SHA-256, and only then given its name.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from fedfuse.catalogue.card import Hub
from fedfuse.catalogue.hub_copies import own_folder
from fedfuse.core.errors import DataError
from fedfuse.core.files import write_atomically

CHUNK = 1 << 20
TIMEOUT = 30.0
"""Seconds without an answer."""


def fetch(hub: Hub) -> Path:
    """Bring the files onto the disk and say in which folder they lie."""
    wanted = _wanted(hub)
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"fetching {hub.name}", total=sum(entry["size"] for entry in wanted))
        for entry in wanted:
            target = own_folder(hub) / entry["path"]
            if not target.is_file():
                write_atomically(target, partial(_stream, hub, entry, progress, task))
    return own_folder(hub)


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")


def _wanted(hub: Hub) -> list[dict[str, Any]]:
    """The hub's entries for the files: path, size and, for large files, SHA-256."""
    try:
        with urlopen(f"{_endpoint()}/api/datasets/{hub.name}/tree/main?recursive=true", timeout=TIMEOUT) as response:
            entries = json.load(response)
    except (URLError, OSError, ValueError) as error:
        raise DataError(f"the hub does not answer: {getattr(error, 'reason', error)}") from error
    patterns = hub.files.parts.values()
    for pattern in patterns:
        if not any(_matches(entry["path"], pattern) for entry in entries):
            raise DataError(f"{hub.name} on the hub has no file {pattern}")
    return [entry for entry in entries if any(_matches(entry["path"], pattern) for pattern in patterns)]


def _matches(path: str, pattern: str) -> bool:
    """As deep as the pattern, so that no path of the hub leads out of our folder."""
    return path.count("/") == pattern.count("/") and fnmatch.fnmatchcase(path, pattern)


def _stream(hub: Hub, entry: dict[str, Any], progress: Progress, task: TaskID, place: Path) -> None:
    digest, size = hashlib.sha256(), 0
    url = f"{_endpoint()}/datasets/{hub.name}/resolve/main/{quote(entry['path'])}"
    try:
        with urlopen(url, timeout=TIMEOUT) as response, place.open("wb") as file:
            while chunk := response.read(CHUNK):
                file.write(chunk)
                digest.update(chunk)
                size += len(chunk)
                progress.advance(task, len(chunk))
    except (URLError, ConnectionError, TimeoutError, HTTPException) as error:
        raise DataError(f"{url} cannot be fetched: {error}") from error
    expected = entry.get("lfs", {}).get("oid", digest.hexdigest())
    if (size, digest.hexdigest()) != (entry["size"], expected):
        raise DataError(f"{url} came with another size or checksum than the hub announces; try again")
