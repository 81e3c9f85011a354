"""A party's side of masks: what it holds of one attempt, and what it does and refuses in each step.

What it holds lies in the memory of its node, in Flower's context, and on no disk. Beside that it keeps, for each task,
with whom its answer was added up: the same task may be asked of it again, by a server that fell back, but two sums of
one answer with different others would betray it, and so the second is refused.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import torch
from flwr.app import ConfigRecord, RecordDict

from fedfuse.core.errors import DataError
from fedfuse.core.messages import Update
from fedfuse.federation.sums.settings import SecureSums
from fedfuse.federation.sums.summation import SUMMAND, residues
from fedfuse.flower.masking.messages import (
    ATTEMPT,
    LETTERS,
    MASKING,
    MEMBERS,
    NEIGHBOURS,
    SENDERS,
    attempt_of,
    clients_in,
    config_of,
    message,
    rows_of,
)  # fmt: skip
from fedfuse.flower.masking.neighbours import number_of_neighbours, sign
from fedfuse.flower.masking.primitives import (
    PUBLIC,
    SEALED,
    SECRET_SHARE,
    SEED_SHARE,
    agreed,
    commitment,
    fresh_pair,
    fresh_seed,
    is_public,
    mask,
    pair_mask,
    sealed,
    shares_of,
    unsealed,
)  # fmt: skip
from fedfuse.flower.reading import record_of

HELD = "fedfuse-masking"
"""Where Flower's context has it."""
OPENED = "sums.txt"
"""Where a party keeps with whom its answers were added up: a line for each, of two digests."""
LONGEST = 1 << 26
"""Bytes of that file that are read."""


@dataclass(frozen=True)
class Held:
    """What a party holds of one attempt."""

    attempt: str
    step: str
    round: int
    experiment: str
    mask_secret: bytes = b""
    mask_public: bytes = b""
    share_secret: bytes = b""
    share_public: bytes = b""
    members: list[int] = field(default_factory=list)
    neighbours: list[int] = field(default_factory=list)
    mask_keys: list[bytes] = field(default_factory=list)
    share_keys: list[bytes] = field(default_factory=list)
    seed: bytes = b""
    senders: list[int] = field(default_factory=list)
    """From here on, the party itself included: it has a share of its own secrets as well."""
    secret_shares: list[bytes] = field(default_factory=list)
    seed_shares: list[bytes] = field(default_factory=list)
    task: str = ""
    """The digest of what was answered."""


class PartyMasks:
    """Of one client; ``state`` is what Flower keeps for its node in memory."""

    def __init__(self, settings: SecureSums, client: int, state: RecordDict) -> None:
        self.settings, self.client, self.state = settings, client, state

    def keys(self, attempt: str, number: int, experiment: str) -> RecordDict:
        """New keys for a new attempt at a round; what was held of another is forgotten."""
        (mask_secret, mask_public), (share_secret, share_public) = fresh_pair(), fresh_pair()
        self._hold(Held(attempt, "keys", number, experiment, mask_secret, mask_public, share_secret, share_public))
        return message({ATTEMPT: attempt}, keys=[mask_public, share_public])

    def shares(self, content: RecordDict) -> tuple[int, RecordDict]:
        """Shares of what nobody shall have alone, sealed for the neighbours."""
        config = config_of(content)
        held = self._held(attempt_of(config), "keys")
        members, neighbours = clients_in(config, MEMBERS), clients_in(config, NEIGHBOURS)
        mask_keys = rows_of(content, "mask-keys", len(neighbours), PUBLIC)
        share_keys = rows_of(content, "share-keys", len(neighbours), PUBLIC)
        self._check_members(members, neighbours)
        _check_keys([held.mask_public, held.share_public, *mask_keys, *share_keys])
        seed, everybody = fresh_seed(), sorted([*neighbours, self.client])
        needed = self.settings.shares_needed(len(neighbours))
        of_secret = dict(zip(everybody, shares_of(held.mask_secret, needed, len(everybody)), strict=True))
        of_seed = dict(zip(everybody, shares_of(seed, needed, len(everybody)), strict=True))
        letters = [
            sealed(agreed(held.share_secret, key), self.client, other, of_secret[other], of_seed[other])
            for other, key in zip(neighbours, share_keys, strict=True)
        ]
        own = {"secret_shares": [of_secret[self.client]], "seed_shares": [of_seed[self.client]]}
        asked = {"members": members, "neighbours": neighbours, "mask_keys": mask_keys, "share_keys": share_keys}
        self._hold(replace(held, step="shares", seed=seed, **asked, **own))  # type: ignore[arg-type]
        return held.round, message({ATTEMPT: held.attempt}, sealed=letters, commitment=[commitment(seed)])

    def _check_members(self, members: Sequence[int], neighbours: Sequence[int]) -> None:
        """There are enough to hide in."""
        if self.client not in members or len(members) < self.settings.least:
            raise DataError(f"a sum of {len(members)} clients hides too few, the experiment says {self.settings.least}")
        others = set(members) - {self.client}
        if not set(neighbours) <= others or len(neighbours) != number_of_neighbours(len(members), self.settings):
            raise DataError("the neighbours for masks are not as many of the sum's clients as the experiment says")

    def asked_to(self, content: RecordDict) -> Held:
        """What a task's answer shall be masked with; a server that wants it plain gets none."""
        if MASKING not in content:
            raise DataError("the server asks for the update itself, but was promised nothing but sums")
        config = record_of(content, MASKING, ConfigRecord)
        held = self._held(attempt_of(config), "shares")
        senders = clients_in(config, SENDERS)
        letters = rows_of(content, "sealed", len(senders), SEALED, record=LETTERS)
        if not set(senders) <= set(held.neighbours):
            raise DataError("shares come from clients that are no neighbours")
        if len(senders) + 1 < self.settings.shares_needed(len(held.neighbours)):
            raise DataError(f"only {len(senders)} of {len(held.neighbours)} neighbours sent shares: too few to hide in")
        keys = dict(zip(held.neighbours, held.share_keys, strict=True))
        read = {
            sender: unsealed(agreed(held.share_secret, keys[sender]), sender, self.client, letter)
            for sender, letter in zip(senders, letters, strict=True)
        }
        read[self.client] = (held.secret_shares[0], held.seed_shares[0])
        none = bytes(SECRET_SHARE), bytes(SEED_SHARE)  # who sends what cannot be read has no share here
        shares = {sender: own or none for sender, own in sorted(read.items())}
        return replace(
            held,
            senders=list(shares),
            secret_shares=[secret for secret, _ in shares.values()],
            seed_shares=[seed for _, seed in shares.values()],
        )

    def masked(self, update: Update, held: Held, task: str) -> Update:
        """The answer to a task, of which nothing can be told but by what all masks come to; ``task`` is its digest."""
        total = residues(update.extras[SUMMAND]).copy()
        total += mask(held.seed, total)
        keys = dict(zip(held.neighbours, held.mask_keys, strict=True))
        for other in held.senders:
            if other != self.client:
                between = pair_mask(held.mask_secret, keys[other], total)
                total = total + between if sign(self.client, other) > 0 else total - between
        self._hold(replace(held, step="train", task=task))
        signed = total.view("i4" if total.itemsize == 4 else "i8")
        return replace(update, extras={**update.extras, SUMMAND: torch.from_numpy(signed)})

    def opening(self, content: RecordDict, folder_of: Callable[[str], Path]) -> tuple[int, RecordDict]:
        """Shares of the seeds of those who are in the sum, and of the mask keys of those who are not: once.

        ``folder_of`` is where the party keeps what belongs to an experiment.
        """
        config = config_of(content)
        held = self._held(attempt_of(config), "train")
        members = clients_in(config, MEMBERS)
        if self.client not in members or not set(members) <= set(held.members):
            raise DataError("the sum is said to be of clients that did not agree on masks, or without this one")
        if len(members) < self.settings.needed(len(held.members)):
            raise DataError(f"a sum of {len(members)} of {len(held.members)} clients hides too few")
        here = set(members)
        if sum(sender in here for sender in held.senders) < self.settings.shares_needed(len(held.neighbours)):
            raise DataError("too few neighbours are in the sum")
        self.state.pop(HELD, None)  # whatever happens now, nothing is said a second time
        _keep_opened(folder_of(held.experiment) / OPENED, held.task, members)
        seeds = [share for sender, share in zip(held.senders, held.seed_shares, strict=True) if sender in here]
        others = [share for sender, share in zip(held.senders, held.secret_shares, strict=True) if sender not in here]
        return held.round, message({ATTEMPT: held.attempt}, seeds=seeds, secrets=others)

    def _held(self, attempt: str, step: str) -> Held:
        """What is held of this very attempt, if this very step is done and none after it."""
        record = self.state.get(HELD)
        if not isinstance(record, ConfigRecord) or record[ATTEMPT] != attempt or record["step"] != step:
            raise DataError(f"no attempt at masks of this name has come to '{step}' here; another one may have begun")
        return Held(**record)

    def _hold(self, held: Held) -> None:
        self.state[HELD] = ConfigRecord({one.name: getattr(held, one.name) for one in fields(held)})


def _check_keys(keys: Sequence[bytes]) -> None:
    if len(set(keys)) < len(keys):
        raise DataError("a key comes twice")
    if not all(map(is_public, keys)):
        raise DataError("a key is none")


def _keep_opened(path: Path, task: str, members: Sequence[int]) -> None:
    """Write down with whom the answer to a task was added up; refuse others than at the first time."""
    together = hashlib.sha256(repr(list(members)).encode()).hexdigest()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open("a+", encoding="ascii", errors="replace") as file:
        file.seek(max(0, path.stat().st_size - LONGEST))
        text = file.read()
        known = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
        if known.get(task, together) != together:
            raise DataError("the answer to this task was added up before with other clients; two sums would betray it")
        if task not in known:
            unfinished = "\n" if text and not text.endswith("\n") else ""  # by a node that was killed
            file.write(f"{unfinished}{task} {together}\n")
            file.flush()
            os.fsync(file.fileno())
