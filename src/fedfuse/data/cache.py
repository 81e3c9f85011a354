"""Decoded datasets on the disk, so that images are decoded once; losing the cache costs time and nothing else.

Their folders are for their owner alone, because the files that they were read from may be.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from fedfuse.core.files import cache_folder, write_atomically, write_text
from fedfuse.data.readers.contents import Array, Columns, Contents, Reading
from fedfuse.data.readers.encoding import Encoding
from fedfuse.data.readers.labels import Classes

TABLES = (".parquet", ".csv", ".jsonl", ".txt", ".npz")
PRIVATE = 0o700
FORMAT = 7
"""Raised whenever the decoded arrays of the same file would differ from those of an older version."""


def cached(
    sources: Sequence[Path], reading: Reading, read: Callable[[], Contents], classes: Sequence[str] = ()
) -> Contents:
    """The contents of ``sources`` from the cache, or from ``read`` and then into the cache.

    ``classes`` are the class names where the files themselves do not hold them.
    """
    folder = cache_folder() / _address(sources, reading, classes)
    known = _load(folder)
    if known is not None:
        with suppress(OSError):  # somebody else's, who let us read it
            folder.chmod(PRIVATE)  # earlier versions left it open
        return known
    contents = read()
    if contents.is_whole:
        _store(folder, contents)
    return contents


def _address(sources: Sequence[Path], reading: Reading, classes: Sequence[str]) -> str:
    states = [_state(path, reading) for path in sources]
    return hashlib.sha256(repr((FORMAT, states, reading, tuple(classes))).encode()).hexdigest()


def _state(path: Path, reading: Reading) -> object:
    """What a file is recognised by: tables that may hold texts by their content, images by place, size and times.

    Who copies a file with its old time cannot give it the time of its last change, nor its number on the disk.
    """
    if reading.tokenizer is not None and path.suffix in TABLES:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    state = path.stat()
    return str(path.absolute()), state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_dev, state.st_ino


def _load(folder: Path) -> Contents | None:
    """None when there is nothing, or when what is there is cut off or damaged."""
    try:
        description = json.loads((folder / "contents.json").read_text(encoding="utf-8"))
        inputs = np.load(folder / "inputs.npy", allow_pickle=False)
        labels = np.load(folder / "labels.npy", allow_pickle=False)
        clients = np.load(folder / "clients.npy", allow_pickle=False) if description["clients"] else None
        names = description["class_names"]
        contents = Contents(
            inputs,
            labels,
            None if names is None else tuple(names),
            clients,
            _columns(description["columns"]),
            classes=_classes(description["classes"]),
            notes=tuple(description["notes"]),
        )
        return contents if description["checksums"] == _checksums(contents) else None
    except Exception:  # whatever is wrong with it, the files are still there
        return None


def _store(folder: Path, contents: Contents) -> None:
    description = {
        "checksums": _checksums(contents),
        "class_names": contents.class_names,
        "clients": contents.clients is not None,
        "columns": None if contents.columns is None else _plain(contents.columns),
        "classes": None if contents.classes is None else asdict(contents.classes),
        "notes": contents.notes,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(PRIVATE)
        _save(folder / "inputs.npy", contents.inputs)
        _save(folder / "labels.npy", contents.labels)
        if contents.clients is not None:
            _save(folder / "clients.npy", contents.clients)
        # Last, so that a description never speaks of arrays that are not there.
        write_text(folder / "contents.json", json.dumps(description))
    except OSError:
        # A read-only or full disk only means decoding again next time.
        return


def _plain(columns: Columns) -> dict[str, Any]:
    encoding = None if columns.encoding is None else columns.encoding.model_dump(mode="json")
    return {"inputs": columns.inputs, "beside": columns.beside, "encoding": encoding}


def _columns(plain: dict[str, Any] | None) -> Columns | None:
    if plain is None:
        return None
    encoding = None if plain["encoding"] is None else Encoding.model_validate(plain["encoding"])
    return Columns(tuple(plain["inputs"]), tuple(plain["beside"]), encoding)


def _classes(plain: dict[str, Any] | None) -> Classes | None:
    if plain is None:
        return None
    return Classes(
        tuple(plain["names"]), plain["kind"], tuple((str(word), int(number)) for word, number in plain["words"])
    )


def _save(path: Path, array: Array) -> None:
    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.save(file, array, allow_pickle=False)

    write_atomically(path, write)


def _checksums(contents: Contents) -> list[int]:
    arrays = (contents.inputs, contents.labels, contents.clients)
    words = repr((contents.class_names, contents.columns, contents.classes, contents.notes)).encode()
    return [zlib.crc32(words), *(_checksum(array) for array in arrays if array is not None)]


def _checksum(array: Array) -> int:
    return zlib.crc32(repr((array.shape, array.dtype.str)).encode(), zlib.crc32(np.ascontiguousarray(array).data))
