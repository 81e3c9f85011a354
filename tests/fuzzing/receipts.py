"""Receipts that a party shows: chained again after somebody wrote into them, or simply damaged."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from fedfuse.core.receipt_lines import FIRST, sha256, verify_receipts
from fedfuse.experiment.receipts import check_heard, receipts_sheet
from tests.fuzzing.mutation import bytes_of, value_of
from tests.fuzzing.place import place, written

RECEIPT: dict[str, Any] = {
    "time": "2026-01-01T00:00:00+00:00", "client": 3, "run": "r", "round": 1, "purpose": "update",
    "privacy": {"epsilon": 1.5},
    "records": {"arrays": {"bytes": 10, "arrays": [["w", "float32", [3], 10]]}, "metrics": {"bytes": 2}},
    "total": {"arrays": 10, "metrics": 2},
}  # fmt: skip
SENT = {"event": "client_finished", "client": 3, "round": 1, "bytes_up": 12, "time": 0.0}


def honest() -> list[bytes]:
    second = {**RECEIPT, "round": 2, "total": {"arrays": 20, "metrics": 4}}
    return [_chained([RECEIPT]), _chained([RECEIPT, second])]


def _chained(receipts: list[Any]) -> bytes:
    lines: list[bytes] = []
    for receipt in receipts:
        before = sha256(lines[-1]) if lines else FIRST
        chained = {**receipt, "before": before} if isinstance(receipt, dict) else receipt
        lines.append(json.dumps(chained, default=str, skipkeys=True).encode())
    return b"\n".join(lines) + b"\n"


def mutate(rng: Random, case: bytes) -> bytes:
    """Half of them by somebody who knows how lines are chained."""
    if rng.random() < 0.5:
        return bytes_of(rng, case)
    try:
        return _chained([value_of(rng, json.loads(line)) for line in case.splitlines()])
    except ValueError:  # a number that is too long to be written
        return bytes_of(rng, case)


def read(case: bytes) -> None:
    path = written("receipts.jsonl", case)
    run = place("run of receipts")
    run.mkdir(exist_ok=True)
    (run / "events.jsonl").write_text(json.dumps(SENT) + "\n", encoding="utf-8")
    receipts_sheet(path).text()
    check_heard(path, run)
    verify_receipts(path)
