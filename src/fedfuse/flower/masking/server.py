"""The server's side of masks: one attempt of a round, from keys to the sum of masks that do not cancel.

It is as curious as it likes: all that it gets are public keys, sealed letters, masked numbers, and shares that never
give both secrets of one party.
"""

from __future__ import annotations

import logging
import random
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from flwr.app import ConfigRecord, RecordDict

from fedfuse.core.errors import FedfuseError
from fedfuse.federation.engine import Missed, Residues, WithheldError
from fedfuse.federation.sums.settings import SecureSums
from fedfuse.flower.masking.messages import (
    ATTEMPT,
    KEYS,
    LETTERS,
    MASKING,
    MEMBERS,
    NEIGHBOURS,
    OPENING,
    SENDERS,
    SHARES,
    attempt_of,
    config_of,
    message,
    rows_of,
    rows_record,
)  # fmt: skip
from fedfuse.flower.masking.neighbours import neighbours_of, sign
from fedfuse.flower.masking.primitives import (
    PUBLIC,
    SEALED,
    SECRET_SHARE,
    SEED_SHARE,
    commitment,
    is_public,
    mask,
    pair_mask,
    public_of,
    secret_of,
)  # fmt: skip

logger = logging.getLogger("flwr")
Ask = Callable[[str, Mapping[int, RecordDict]], Iterator[tuple[int, RecordDict | Missed]]]
"""Ask clients, each for itself, and hear them as they answer."""
Miss = Callable[[int, Missed], None]
Read = TypeVar("Read")


@dataclass
class Group:
    """The clients of one sum."""

    clients: list[int]
    neighbours: dict[int, list[int]] = field(default_factory=dict)
    mask_keys: dict[int, bytes] = field(default_factory=dict)
    share_keys: dict[int, bytes] = field(default_factory=dict)
    letters: dict[int, dict[int, bytes]] = field(default_factory=dict)
    """By sender and recipient."""
    commitments: dict[int, bytes] = field(default_factory=dict)


class Masking:
    """One attempt; ``ask`` brings messages to clients, and ``miss`` is told of those who are out of it, and why."""

    def __init__(self, settings: SecureSums, ask: Ask, miss: Miss) -> None:
        self.settings, self.ask, self.miss = settings, ask, miss
        self.attempt = secrets.token_hex(16)
        self.groups: list[Group] = []

    def agree(self, sums: Collection[Sequence[int]], about: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
        """What the tasks of clients carry who agreed on masks, for each of these ``sums`` among its clients."""
        self.groups = [Group(sorted(clients)) for clients in sums]
        self._gather_keys(about)
        for group in self.groups:
            group.neighbours = neighbours_of(_shuffled(group.clients), self.settings)
        self._gather_shares()
        return {client: self._letters(group, client) for group in self.groups for client in group.clients}

    def _gather_keys(self, about: Mapping[str, Any]) -> None:
        asked = {c: message({ATTEMPT: self.attempt, **about, "client": c}) for c in self._everybody()}
        known: set[bytes] = set()
        for client, (mask_key, share_key) in self._heard(KEYS, asked, partial(_keys_in, known)):
            known.update((mask_key, share_key))
            group = self._of(client)
            group.mask_keys[client], group.share_keys[client] = mask_key, share_key
        self._keep(lambda group: group.mask_keys)

    def _gather_shares(self) -> None:
        asked = {client: self._asks_for_shares(self._of(client), client) for client in self._everybody()}
        heard = self._heard(SHARES, asked, lambda client, content: _letters_in(content, self._of(client), client))
        for client, (letters, promised) in heard:
            self._of(client).letters[client], self._of(client).commitments[client] = letters, promised
        self._keep(lambda group: group.letters)
        for group in self.groups:
            self._without_lonely(group)

    def _asks_for_shares(self, group: Group, client: int) -> RecordDict:
        others = group.neighbours[client]
        config = {ATTEMPT: self.attempt, MEMBERS: group.clients, NEIGHBOURS: others}
        keys = {
            "mask_keys": [group.mask_keys[other] for other in others],
            "share_keys": [group.share_keys[other] for other in others],
        }
        return message(config, **keys)

    def _keep(self, heard: Callable[[Group], Collection[int]]) -> None:
        """Of every group, those who were heard; a group that is too small is none."""
        for group in self.groups:
            here = [client for client in group.clients if client in heard(group)]
            if len(here) < self.settings.needed(len(group.clients)):
                why = f"only {len(here)} of {len(group.clients)} clients agreed on masks"
                for client in here:
                    self.miss(client, Missed("late", why))
                here = []
            group.clients = here

    def _without_lonely(self, group: Group) -> None:
        """Leave out who has too few neighbours left, and then perhaps their neighbours."""
        while lonely := [client for client in group.clients if self._is_lonely(group, client)]:
            for client in lonely:
                self.miss(client, Missed("late", "too few of its neighbours agreed on masks"))
            group.clients = [client for client in group.clients if client not in lonely]

    def _is_lonely(self, group: Group, client: int) -> bool:
        return len(self._senders(group, client)) + 1 < self._needed(group, client)

    def _needed(self, group: Group, client: int) -> int:
        """Shares that give a secret of this client."""
        return self.settings.shares_needed(len(group.neighbours[client]))

    def _senders(self, group: Group, client: int) -> list[int]:
        """The neighbours of a client that go on with it."""
        here = set(group.clients)
        return [other for other in group.neighbours[client] if other in here]

    def _letters(self, group: Group, client: int) -> dict[str, Any]:
        senders = self._senders(group, client)
        letters = rows_record({"sealed": [group.letters[sender][client] for sender in senders]})
        return {MASKING: ConfigRecord({ATTEMPT: self.attempt, SENDERS: senders}), LETTERS: letters}

    def masks_of(self, members: Sequence[int], like: Residues) -> Residues:
        """What the masks of these clients come to, all of whom are in one sum of numbers like these."""
        group, here = self._of(members[0]), sorted(members)
        gone = sorted(set(group.clients) - set(here))
        seeds: dict[int, list[bytes]] = {client: [] for client in here}
        keys: dict[int, list[bytes]] = {client: [] for client in gone}
        asked = {client: message({ATTEMPT: self.attempt, MEMBERS: here}) for client in here}
        helped = 0
        for _, (own_seeds, own_keys) in self._heard(OPENING, asked, partial(self._shares_in, group, set(here))):
            helped += 1
            for found, own in ((seeds, own_seeds), (keys, own_keys)):
                for other, share in own.items():
                    found[other].append(share)
        total = np.zeros_like(like)
        for client in here:
            total += mask(self._seed(group, client, seeds[client], helped), like)
        for client in gone:
            if others := set(group.neighbours[client]) & set(here):
                total += self._left_over(group, client, self._secret(group, client, keys[client], helped), others, like)
        return total

    def _left_over(self, group: Group, gone: int, secret: bytes, others: Collection[int], like: Residues) -> Residues:
        """What a client that is not in the sum would have cancelled of the others' masks."""
        total = np.zeros_like(like)
        for other in others:
            between = pair_mask(secret, group.mask_keys[other], like)
            total = total + between if sign(other, gone) > 0 else total - between
        return total

    def _shares_in(
        self, group: Group, here: set[int], client: int, content: RecordDict
    ) -> tuple[dict[int, bytes], dict[int, bytes]]:
        """The shares that a client gives: of seeds of those who are in the sum, of mask keys of the others."""
        holds = sorted([*self._senders(group, client), client])
        alive, gone = [one for one in holds if one in here], [one for one in holds if one not in here]
        seeds = rows_of(content, "seeds", len(alive), SEED_SHARE)
        keys = rows_of(content, "secrets", len(gone), SECRET_SHARE)
        return dict(zip(alive, seeds, strict=True)), dict(zip(gone, keys, strict=True))

    def _seed(self, group: Group, client: int, shares: Sequence[bytes], helped: int) -> bytes:
        promised = group.commitments[client]
        found = secret_of(shares, self._needed(group, client), lambda seed: commitment(seed) == promised)
        return self._found(found, group, client, shares, helped)

    def _secret(self, group: Group, client: int, shares: Sequence[bytes], helped: int) -> bytes:
        public = group.mask_keys[client]
        found = secret_of(shares, self._needed(group, client), lambda secret: _is_secret_of(secret, public))
        return self._found(found, group, client, shares, helped)

    def _found(self, found: bytes | None, group: Group, client: int, shares: Sequence[bytes], helped: int) -> bytes:
        if found is not None:
            return found
        needed = self._needed(group, client)
        if len(shares) < needed:
            raise WithheldError(f"{helped} of them helped to open it, and {needed} are needed")
        raise WithheldError("their shares do not fit together")

    def _heard(
        self, step: str, asked: Mapping[int, RecordDict], read: Callable[[int, RecordDict], Read]
    ) -> Iterator[tuple[int, Read]]:
        """The answers that can be read, and belong to this attempt."""
        for client, content in self.ask(step, asked):
            if isinstance(content, Missed):
                self.miss(client, content)
                continue
            try:
                if attempt_of(config_of(content)) != self.attempt:
                    raise FedfuseError("it belongs to another attempt")
                yield client, read(client, content)
            except FedfuseError as error:
                logger.warning("fedfuse: client %s, %s for masks: %s", client, step, error)
                self.miss(client, Missed("refused", f"its {step} for masks: {error}"))

    def _everybody(self) -> list[int]:
        return [client for group in self.groups for client in group.clients]

    def _of(self, client: int) -> Group:
        return next(group for group in self.groups if client in group.neighbours or client in group.clients)


def _shuffled(clients: Sequence[int]) -> list[int]:
    """In an order that nobody can arrange for."""
    return random.SystemRandom().sample(clients, len(clients))


def _keys_in(known: set[bytes], _client: int, content: RecordDict) -> tuple[bytes, bytes]:
    mask_key, share_key = rows_of(content, "keys", 2, PUBLIC)
    if mask_key == share_key or {mask_key, share_key} & known:
        raise FedfuseError("a key comes twice")
    if not is_public(mask_key) or not is_public(share_key):
        raise FedfuseError("a key is none")
    return mask_key, share_key


def _letters_in(content: RecordDict, group: Group, client: int) -> tuple[dict[int, bytes], bytes]:
    others = group.neighbours[client]
    [promised] = rows_of(content, "commitment", 1, 32)
    return dict(zip(others, rows_of(content, "sealed", len(others), SEALED), strict=True)), promised


def _is_secret_of(secret: bytes, public: bytes) -> bool:
    try:
        return public_of(secret) == public
    except ValueError:
        return False
