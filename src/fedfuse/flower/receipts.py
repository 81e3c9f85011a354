"""A party's own record of all that left its machine: a line of JSON for each message, written before it is sent.

    time, client, run, round    when, as whom, in which run of Flower, and in which round (0 is before the first)
    purpose                     what was sent: description, update, trouble; keys, shares, opening for masks
    masked                      true for an update that can be seen in a sum alone
    records                     by name: its bytes and SHA-256, and what is in it: name, dtype, shape and bytes of each
                                array, or plain values
    total                       bytes of each record over all lines so far
    before                      SHA-256 of the line before, so that a line that was taken out or changed shows
    key, signature              the party's own (receipt_keys.py); core/receipt_lines.py says what they are of

A message that cannot be written down is not sent.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from flwr.app import ArrayRecord, RecordDict

from fedfuse.core.errors import DataError
from fedfuse.core.plain_json import dumps
from fedfuse.core.receipt_lines import FIRST, Signer, as_line, parsed, read_receipts, sha256

BLOCK = 1 << 16
__all__ = ["describe", "describe_values", "last_receipt", "read_receipts", "sizes", "write_receipt"]


def describe(content: RecordDict) -> dict[str, Any]:
    """What is in a message, record by record."""
    return {name: _of_arrays(r) if isinstance(r, ArrayRecord) else describe_values(r) for name, r in content.items()}


def sizes(records: Mapping[str, Any]) -> str:
    """How much is sent, by name."""
    return ", ".join(f"{name} {record['bytes']:,} bytes" for name, record in records.items() if record["bytes"])


def write_receipt(
    path: Path, facts: Mapping[str, Any], records: Mapping[str, Any], signer: Signer | None = None
) -> None:
    """Append a line, and wait until the disk has it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            sent = {name: record["bytes"] for name, record in records.items()}
            _append(file, {**facts, "records": records}, sent, signer)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}; nothing was sent, because no receipt of it could be kept") from None


def last_receipt(path: Path) -> dict[str, Any] | None:
    """The latest line, whose ``total`` is that of all; None if there is none."""
    try:
        with path.open("rb") as file:
            return next(filter(None, map(parsed, _backwards(file))), None)
    except OSError:
        return None


def _append(file: BinaryIO, receipt: Mapping[str, Any], sent: Mapping[str, int], signer: Signer | None) -> None:
    """A line that a killed process left unfinished stays, as a line of its own that says nothing."""
    lines = list(_until_parsed(_backwards(file)))
    unfinished = bool(lines and lines[0])
    last = lines[0] if unfinished else next(iter(lines[1:]), None)
    total = dict((parsed(lines[-1]) or {}).get("total", {})) if lines else {}
    for name, size in sent.items():
        total[name] = total.get(name, 0) + size
    time = datetime.now(UTC).isoformat(timespec="seconds")
    line = {"time": time, **receipt, "total": total, "before": FIRST if last is None else sha256(last)}
    end = file.seek(0, os.SEEK_END)
    try:
        file.write(b"\n" * unfinished + as_line(line, signer) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    except OSError:
        os.ftruncate(file.fileno(), end)
        raise


def _until_parsed(lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield line
        if parsed(line) is not None:
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
    return {"bytes": len(text), "sha256": sha256(text), "values": values}
