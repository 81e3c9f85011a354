"""What a node does, in a small file for each experiment and client that ``fedfuse flower status`` shows.

experiment, method, rounds    what it takes part in
client, prototype, examples   as whom, with which model, on how many examples
round, doing, time            where it is, and since when
masked                        how many clients the sum is of that its last update is hidden in
privacy                       what it has given away so far: unit, delta, epsilon by whom it is about, budget
refusals, refused             how many of its answers the server refused, and why the last one
troubles, trouble             how often it could not do what it was asked, and why; null once it can again
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedfuse.core.plain_json import dumps
from fedfuse.flower.receipts import last_receipt

RECEIPTS, STATUS = ("receipts", ".jsonl"), ("status", ".json")
SHOWN = 100
"""Clients, the latest first: more than these are a simulation."""


def file_of(state: Path, kind: tuple[str, str], experiment: str, client: int) -> Path:
    """Where a node keeps its receipts or its status; the name of an experiment is that of a file, too."""
    return state / kind[0] / experiment / f"client-{client}{kind[1]}"


def default_state() -> Path:
    """Where nodes keep what they keep, unless they are told otherwise."""
    return Path(os.environ.get("FLWR_HOME") or Path.home() / ".flwr") / "fedfuse"


def note(path: Path, facts: Mapping[str, Any]) -> None:
    """Lay facts over those that are there. Nobody waits for the disk: a status is no more than a notice."""
    known = {**_read(path), **facts, "time": datetime.now(UTC).isoformat(timespec="seconds")}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(dumps(known))
    temporary.replace(path)


def count(path: Path, number: str, fact: str, value: str) -> None:
    """Once more of something, and what it was this time."""
    before = _read(path).get(number)
    note(path, {number: (before if isinstance(before, int) else 0) + 1, fact: value})


def statuses(state: Path) -> list[dict[str, Any]]:
    """Of all clients that this machine plays, the latest first, with the bytes that they sent so far."""
    files = sorted(state.glob(f"{STATUS[0]}/*/client-*{STATUS[1]}"), key=lambda path: -path.stat().st_mtime)
    return [{**_read(path), **_sent(state, path)} for path in files[:SHOWN]]


def in_words(privacy: Any) -> str:
    """Epsilon and what it is about, of what a status says of privacy; it may be anything."""
    numbers = privacy.get("epsilon") if isinstance(privacy, dict) else None
    if not isinstance(numbers, dict):
        return "unknown"
    said = ", ".join(f"{_epsilon(value)} against {against}" for against, value in numbers.items())
    budget = privacy.get("budget")
    of = f" of {budget:g}" if isinstance(budget, int | float) else ""
    return f"{said}{of}, at delta {privacy.get('delta')}, of every {privacy.get('unit')}"


def _epsilon(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else "without bound"


def _sent(state: Path, status: Path) -> dict[str, Any]:
    path = state / RECEIPTS[0] / status.parent.name / f"{status.stem}{RECEIPTS[1]}"
    receipt = last_receipt(path)
    return {"sent": receipt["total"] if receipt else {}, "receipts": str(path)}


def _read(path: Path) -> dict[str, Any]:
    """Nothing where there is nothing that can be read."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
