"""What masks cost beside plain updates: ``python -m benchmarks.secure_sums [--parameters 100000] [--write]``.

All parties and the server in this process, one after another, with the messages as Flower would carry them. Seconds are
of the processor: of one party for all its steps, and of the server for all of its. Training is not in them. Every sum
is compared with that of the plain numbers; a wrong one ends it with 1. In the engines' environment, because of Flower.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import torch
from flwr.app import ConfigRecord, RecordDict
from flwr.common.serde import recorddict_to_proto

from benchmarks.page import write_table
from fedfuse.core.messages import Update
from fedfuse.core.weights import NOTHING
from fedfuse.federation.engine import Missed
from fedfuse.federation.sums.settings import SecureSums
from fedfuse.federation.sums.summation import SUMMAND, residues
from fedfuse.flower.masking.messages import KEYS, SHARES
from fedfuse.flower.masking.party import PartyMasks
from fedfuse.flower.masking.server import Masking
from fedfuse.flower.records import CONFIG

PAGE = Path("docs/secure-sums.md")
CASES = ((10, 0), (10, 1), (50, 0), (50, 5), (200, 20))
"""Clients, and how many of them drop out after they agreed on masks."""


@dataclass
class Cost:
    """Of one round: seconds of all parties and of the server, bytes to and from all parties, beside the usual ones."""

    parties: float = 0.0
    server: float = 0.0
    up: int = 0
    down: int = 0
    states: dict[int, RecordDict] = field(default_factory=dict)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parameters", type=int, default=100_000)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE}")
    options = parser.parse_args(arguments)
    lines = [
        "| clients | drop out | kB up for each | kB down for each | s of a party | s of the server |",
        "|---|---|---|---|---|---|",
    ]
    for clients, gone in CASES:
        cost = measured(clients, gone, options.parameters)
        lines.append(
            f"| {clients} | {gone} | {cost.up / clients / 1000:.1f} | {cost.down / clients / 1000:.1f} "
            f"| {cost.parties / clients:.2f} | {cost.server:.2f} |"
        )
        print(lines[-1], flush=True)
    if options.write:
        write_table(PAGE, "cost", "\n".join(lines))
    return 0


def measured(clients: int, gone: int, parameters: int) -> Cost:
    """One round with clients whose numbers are random."""
    settings, cost = SecureSums(), Cost(states={client: RecordDict() for client in range(clients)})
    draw = np.random.default_rng(0)
    values = {client: draw.integers(-(2**20), 2**20, parameters).astype(np.int32) for client in range(clients)}
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        masking = Masking(settings, lambda step, asked: _asked(step, asked, cost, Path(folder)), _fail)
        letters = masking.agree([range(clients)], {"server-round": 1, "experiment": "e" * 64})
        members, total = list(range(gone, clients)), np.zeros(parameters, dtype=np.uint32)
        for client in members:
            cost.down += _size(RecordDict(letters[client]))
            total += _masked(client, letters[client], values[client], cost)
        total -= masking.masks_of(members, total)
        cost.server = time.process_time() - began - cost.parties
    if not np.array_equal(total.view(np.int32), np.sum([values[client] for client in members], axis=0)):
        sys.exit("the sum is wrong")
    return cost


def _asked(step: str, asked: Mapping[int, RecordDict], cost: Cost, folder: Path) -> Iterator[tuple[int, RecordDict]]:
    for client, content in asked.items():
        began = time.process_time()
        party = PartyMasks(SecureSums(), client, cost.states[client])
        if step == KEYS:
            answer = party.keys(content[CONFIG]["attempt"], 1, "e" * 64)
        elif step == SHARES:
            _, answer = party.shares(content)
        else:
            _, answer = party.opening(content, partial(_own, folder, client))
        cost.parties += time.process_time() - began
        cost.down, cost.up = cost.down + _size(content), cost.up + _size(answer)
        yield client, answer


def _masked(client: int, letters: Mapping[str, object], values: np.ndarray, cost: Cost) -> np.ndarray:
    began = time.process_time()
    party = PartyMasks(SecureSums(), client, cost.states[client])
    held = party.asked_to(RecordDict({CONFIG: ConfigRecord({}), **letters}))
    update = Update(1, client, "mlp", NOTHING, 1, {SUMMAND: torch.from_numpy(values.copy())})
    masked = residues(party.masked(update, held, "task").extras[SUMMAND])
    cost.parties += time.process_time() - began
    return masked


def _own(folder: Path, client: int, _experiment: str) -> Path:
    return folder / str(client)


def _size(content: RecordDict) -> int:
    return len(recorddict_to_proto(content).SerializeToString())


def _fail(client: int, why: Missed) -> None:
    sys.exit(f"client {client}: {why.reason}")


if __name__ == "__main__":
    sys.exit(main())
