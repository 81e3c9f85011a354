"""Receipts beside the log of a run: written from it for clients of a simulation, compared with it for real parties."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from fedfuse.core.errors import DataError, RunFolderError
from fedfuse.core.files import write_bytes
from fedfuse.core.receipt_lines import FIRST, as_line, read_receipts, sha256
from fedfuse.federation.events import read_events
from fedfuse.federation.folder import RunFolder
from fedfuse.report.sheet import Sheet

ASKED = "parties_asked"
UPDATE, ANSWER = "update", ("arrays", "extras")
"""The record of a simulated client's line, and those of a node's that a server counts."""


def write_receipts(run: str | Path, out: str | Path) -> list[Path]:
    """A file of receipts for every client that sent something in a simulated run, from the run's log.

    Nobody has a key in a simulation, so nobody signs; each line says what the log says, and follows the one before.
    Of a private run that has ended, a client's last line also has its epsilon.
    """
    spent = _epsilons(RunFolder(Path(run)))
    files: dict[int, list[bytes]] = {}
    totals: dict[int, int] = {}
    events = list(_sent(RunFolder(Path(run))))
    last = {event["client"]: place for place, event in enumerate(events)}
    for place, event in enumerate(events):
        client, size = event["client"], event["bytes_up"]
        lines = files.setdefault(client, [])
        totals[client] = totals.get(client, 0) + size
        said = {
            "time": _when(event["time"]), "client": client, "run": str(run), "round": event["round"], "purpose": UPDATE,
            "taken": event["event"] == "client_finished", "records": {UPDATE: {"bytes": size}},
            "total": {UPDATE: totals[client]}, "before": sha256(lines[-1]) if lines else FIRST,
        }  # fmt: skip
        if last[client] == place and client in spent:
            said["privacy"] = {"epsilon": spent[client]}
        lines.append(as_line(said))
    paths = {Path(out) / f"client-{client}.jsonl": lines for client, lines in sorted(files.items())}
    for path in paths:
        if path.exists():
            raise DataError(f"{path} is there already; name another folder")
    for path, lines in paths.items():
        write_bytes(path, b"\n".join(lines) + b"\n")
    return list(paths)


def check_heard(receipts: str | Path, run: str | Path) -> int:
    """How many answers the server of a run has heard from the party; raises if one of them has no receipt.

    An answer's line has its round and its size, and the run of Flower as which the server's log says that it asked.
    """
    runs = _asked_as(RunFolder(Path(run)))
    lines = list(read_receipts(Path(receipts)))
    clients = {line.get("client") for line in lines}
    heard = [event for event in _sent(RunFolder(Path(run))) if event["client"] in clients and event["bytes_up"]]
    if not heard:
        raise DataError(
            f"{run}: its server has heard nothing of the party of {receipts}: one of them is of another run"
        )
    answers = [line for line in lines if line["purpose"] == UPDATE and (not runs or line.get("run") in runs)]
    written = Counter((line["round"], _size(line)) for line in answers)
    needed = Counter((event["round"], event["bytes_up"]) for event in heard)
    if missing := sorted({number for number, _ in needed - written}):
        shown = ", ".join(map(str, missing[:10]))
        raise DataError(
            f"{receipts} has no line for what the server heard in round {shown}: lines were cut off, or are of another "
            "run"
        )
    return len(heard)


def _asked_as(run: RunFolder) -> list[int]:
    """The numbers of the runs of Flower that a run was; none of a simulation, or of an earlier version."""
    events = read_events(run.events) if run.events.exists() else ()
    return [event["run"] for event in events if event.get("event") == ASKED and type(event.get("run")) is int]


def _size(line: dict[str, Any]) -> int:
    """Bytes of an answer as a server counts them: the numbers of all that the method sends, without their headings."""
    records = line["records"]
    if UPDATE in records:
        return int(records[UPDATE]["bytes"])
    return sum(_numbers_in(array) for name in ANSWER for array in _arrays(records.get(name)))


def _arrays(record: Any) -> list[Any]:
    arrays = record.get("arrays") if isinstance(record, dict) else None
    return arrays if isinstance(arrays, list) else []


def _numbers_in(array: Any) -> int:
    """Of one that a line describes by name, type, shape and bytes; none of what is described otherwise."""
    try:
        _, dtype, shape, _ = array
        return math.prod(int(length) for length in shape) * int(np.dtype(dtype).itemsize)
    except (TypeError, ValueError, OverflowError, SyntaxError):
        return 0


def receipts_sheet(path: str | Path) -> Sheet:
    """What left, line by line, with epsilon so far where it was counted."""
    lines = list(read_receipts(Path(path)))
    if not lines:
        raise DataError(f"{path} has no receipts")
    names = [name for name, size in lines[-1]["total"].items() if size]
    rows = [((str(line["time"])[:19], str(line["purpose"])), _numbers(line, names)) for line in lines]
    total = ("", *(f"{lines[-1]['total'][name]:,}" for name in names), "", "")
    return Sheet(str(path), ("time", "sent"), ("round", *names, "epsilon", "signed"), [*rows, (("", "total"), total)])


def _numbers(line: dict[str, Any], names: list[str]) -> tuple[str, ...]:
    sent = [f"{line['records'][name]['bytes']:,}" if name in line["records"] else "" for name in names]
    privacy = line.get("privacy")
    epsilon = privacy.get("epsilon") if isinstance(privacy, dict) else None
    known = f"{epsilon:.4g}" if isinstance(epsilon, float) else str(epsilon) if type(epsilon) is int else ""
    return str(line["round"]), *sent, known, "yes" if "signature" in line else "no"


def _sent(run: RunFolder) -> Iterator[dict[str, Any]]:
    """What came in during a run, whatever became of it."""
    if not run.events.exists():
        raise RunFolderError(f"{run.path} holds no run; give the folder that a run has written, with its events.jsonl")
    for event in read_events(run.events):
        if event.get("event") in ("client_finished", "update_refused"):
            numbers = [event.get(name) for name in ("client", "round", "bytes_up")]
            if all(type(number) is int for number in numbers):
                yield event


def _epsilons(run: RunFolder) -> dict[int, float]:
    """What each client of a private run has spent towards whoever sees most, as its summary says."""
    privacy = run.read_summary().get("privacy") if run.summary.exists() else None
    against = privacy.get("against") if isinstance(privacy, dict) else None
    spent: dict[int, float] = {}
    for known in against.values() if isinstance(against, dict) else ():
        clients = known.get("clients") if isinstance(known, dict) else None
        for client, epsilon in clients.items() if isinstance(clients, dict) else ():
            if client.isdecimal() and isinstance(epsilon, float):
                spent[int(client)] = max(epsilon, spent.get(int(client), 0.0))
    return spent


def _when(seconds: Any) -> str:
    """As a node's receipts have it."""
    try:
        return datetime.fromtimestamp(float(seconds), UTC).isoformat(timespec="seconds")
    except (TypeError, ValueError, OverflowError, OSError):
        return ""
