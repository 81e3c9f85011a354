"""Parties of one sum without any training: each adds a row of whole numbers, and may be gone, or lie, in any step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from flwr.app import ConfigRecord, RecordDict

from fedfuse.core.errors import DataError
from fedfuse.core.messages import Update
from fedfuse.core.weights import NOTHING
from fedfuse.federation.engine import Missed, Residues
from fedfuse.federation.sums.settings import SecureSums
from fedfuse.federation.sums.summation import SUMMAND, residues
from fedfuse.flower.masking.messages import ARRAYS, CONFIG, KEYS, LETTERS, MASKING, SHARES
from fedfuse.flower.masking.party import PartyMasks
from fedfuse.flower.masking.server import Masking
from tests.flower.grid import travelled

STEPS = ("keys", "shares", "train", "opening")
EXPERIMENT = "e" * 64
Bend = Callable[[str, int, RecordDict], RecordDict]


class Parties:
    """Clients by number, what each adds, and who is gone from which step on."""

    def __init__(
        self, values: Mapping[int, np.ndarray], folder: Path, bend: Bend | None = None, **settings: Any
    ) -> None:
        self.values, self.folder = values, folder
        self.settings = SecureSums(**settings)
        self.states = {client: RecordDict() for client in values}
        self.gone: dict[int, str] = {}
        self.bend: Bend = bend or (lambda _step, _client, content: content)
        self.missed: dict[int, Missed] = {}
        self.masked: dict[int, Residues] = {}
        self.said: list[tuple[str, int, RecordDict]] = []

    def party(self, client: int) -> PartyMasks:
        return PartyMasks(self.settings, client, self.states[client])

    def here(self, client: int, step: str) -> bool:
        return client not in self.gone or STEPS.index(step) < STEPS.index(self.gone[client])

    def ask(self, step: str, asked: Mapping[int, RecordDict]):
        for client, content in asked.items():
            if not self.here(client, step):
                yield client, Missed("late", "gone")
                continue
            try:
                answer = self.bend(step, client, self.answer(step, client, travelled(content)))
            except DataError as error:
                yield client, Missed("refused", str(error))
                continue
            self.said.append((step, client, answer))
            yield client, travelled(answer)

    def answer(self, step: str, client: int, content: RecordDict) -> RecordDict:
        party = self.party(client)
        if step == KEYS:
            return party.keys(content[CONFIG]["attempt"], 1, EXPERIMENT)
        return party.shares(content)[1] if step == SHARES else party.opening(content, lambda _: self.own(client))[1]

    def own(self, client: int) -> Path:
        return self.folder / str(client)

    def train(self, client: int, letters: Mapping[str, Any], task: str = "task") -> Residues:
        """A party's masked numbers."""
        party = self.party(client)
        held = party.asked_to(travelled(RecordDict({CONFIG: ConfigRecord({}), **letters})))
        update = Update(1, client, "mlp", NOTHING, 1, {SUMMAND: torch.from_numpy(self.values[client].copy())})
        return residues(party.masked(update, held, task).extras[SUMMAND])

    def begin(self) -> tuple[Masking, dict[int, dict[str, Any]]]:
        masking = Masking(self.settings, self.ask, self.missed.__setitem__)
        return masking, masking.agree([list(self.values)], {"server-round": 1, "experiment": EXPERIMENT})

    def sum(self, task: str = "task", refused: Collection[int] = ()) -> tuple[np.ndarray, list[int]]:
        """The opened sum, and who is in it; the server refuses what some send."""
        masking, letters = self.begin()
        for client, own in letters.items():
            if self.here(client, "train"):
                self.masked[client] = self.train(client, own, task)
        members = sorted(set(self.masked) - set(refused))
        total = np.sum([self.masked[client] for client in members], axis=0, dtype=self.masked[members[0]].dtype)
        total -= masking.masks_of(members, total)
        return total.view(next(iter(self.values.values())).dtype), members


def rows(clients: Collection[int], size: int = 40, dtype: Any = np.int64, seed: int = 0) -> dict[int, np.ndarray]:
    draw = np.random.default_rng(seed)
    return {client: draw.integers(-(2**20), 2**20, size).astype(dtype) for client in clients}


def plain_sum(values: Mapping[int, np.ndarray], members: Collection[int]) -> list[int]:
    """By Python's own integers."""
    return [sum(int(values[client][place]) for client in members) for place in range(len(next(iter(values.values()))))]


__all__ = ["ARRAYS", "LETTERS", "MASKING", "STEPS", "Parties", "plain_sum", "rows"]
