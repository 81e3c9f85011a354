"""A party's own record of all that left its machine: a line of JSON for each message, written before it is sent.

    time, client, run, round    when, as whom, in which run of Flower, and in which round (0 is before the first)
    purpose                     what was sent: description, update, trouble
    records                     by name: its bytes and SHA-256, and what is in it: name, dtype, shape and bytes of each
                                array, or plain values
    total                       bytes of each record over all lines so far
    before                      SHA-256 of the line before, so that a line that was taken out or changed shows

A message that cannot be written down is not sent.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from flwr.app import ArrayRecord, RecordDict

from fedfuse.core.errors import DataError
from fedfuse.core.plain_json import dumps

FIRST = "0" * 64
"""What stands before the first line."""
BLOCK = 1 << 16


def describe(content: RecordDict) -> dict[str, Any]:
    """What is in a message, record by record."""
    return {name: _of_arrays(r) if isinstance(r, ArrayRecord) else describe_values(r) for name, r in content.items()}


def sizes(records: Mapping[str, Any]) -> str:
    """How much is sent, by name."""
    return ", ".join(f"{name} {record['bytes']:,} bytes" for name, record in records.items() if record["bytes"])


def write_receipt(path: Path, facts: Mapping[str, Any], records: Mapping[str, Any]) -> None:
    """Append a line, and wait until the disk has it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            _append(file, {**facts, "records": records}, {name: record["bytes"] for name, record in records.items()})
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}; nothing was sent, because no receipt of it could be kept") from None


def read_receipts(path: Path) -> Iterator[dict[str, Any]]:
    """The lines in order; raises at one that does not follow the line before."""
    before = FIRST
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            receipt = _parsed(line.rstrip(b"\n"))
            if receipt is not None:
                if receipt.get("before") != before:
                    raise DataError(
                        f"{path}, line {number} does not follow the one before: a line was changed or taken out"
                    )
                yield receipt
            before = _sha256(line.rstrip(b"\n"))


def last_receipt(path: Path) -> dict[str, Any] | None:
    """The latest line, whose ``total`` is that of all; None if there is none."""
    try:
        with path.open("rb") as file:
            return next(filter(None, map(_parsed, _backwards(file))), None)
    except OSError:
        return None


def _append(file: BinaryIO, receipt: Mapping[str, Any], sent: Mapping[str, int]) -> None:
    """A line that a killed process left unfinished stays, as a line of its own that says nothing."""
    lines = list(_until_parsed(_backwards(file)))
    unfinished = bool(lines and lines[0])
    last = lines[0] if unfinished else next(iter(lines[1:]), None)
    total = dict((_parsed(lines[-1]) or {}).get("total", {})) if lines else {}
    for name, size in sent.items():
        total[name] = total.get(name, 0) + size
    time = datetime.now(UTC).isoformat(timespec="seconds")
    line = {"time": time, **receipt, "total": total, "before": FIRST if last is None else _sha256(last)}
    end = file.seek(0, os.SEEK_END)
    try:
        file.write(b"\n" * unfinished + dumps(line).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    except OSError:
        os.ftruncate(file.fileno(), end)
        raise


def _until_parsed(lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield line
        if _parsed(line) is not None:
            return


def _backwards(file: BinaryIO) -> Iterator[bytes]:
    """The lines from the last to the first; the last one is empty if the one before it was finished."""
    position, rest = file.seek(0, os.SEEK_END), b""
    while position:
        position -= (step := min(BLOCK, position))
        file.seek(position)
        rest, *lines = (file.read(step) + rest).split(b"\n")
        yield from reversed(lines)
    if rest:
        yield rest


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if _is_receipt(value) else None


def _is_receipt(value: Any) -> bool:
    """Whether it has what is read of it; whoever writes by hand into the file may write anything."""
    if not isinstance(value, dict) or not {"time", "round", "purpose"} <= value.keys():
        return False
    total, records = value.get("total"), value.get("records")
    if not isinstance(total, dict) or not isinstance(records, dict):
        return False
    sizes = [record.get("bytes") if isinstance(record, dict) else None for record in records.values()]
    return all(isinstance(size, int) for size in (*total.values(), *sizes))


def _of_arrays(record: ArrayRecord) -> dict[str, Any]:
    """The hash is of name, type, shape and content of one array after the other, as they travel."""
    digest = hashlib.sha256()
    for name, array in record.items():
        digest.update(f"{name} {array.dtype} {list(array.shape)}\n".encode())
        digest.update(array.data)
    arrays = [[name, array.dtype, list(array.shape), len(array.data)] for name, array in record.items()]
    return {"bytes": sum(size for *_, size in arrays), "sha256": digest.hexdigest(), "arrays": arrays}


def describe_values(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record of plain values."""
    values = {name: record[name] for name in sorted(record)}
    text = dumps(values).encode()
    return {"bytes": len(text), "sha256": _sha256(text), "values": values}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
