"""A party's own side of a promise of privacy: its secrets, its books, and its budget.

Noise, and who is drawn for a step of training, come from a secret that is made for each answer, held in memory and
forgotten; nobody could compute them, whoever knows the experiment's seed, and no two answers share any. What every
answer gave away is entered into the books before it leaves, on this machine, whatever the server says of itself.

An answer is kept for as long as the server may fall back to its round. The very same task then gets the same bytes,
which tells nobody anything new; any other task is answered with new noise, and counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from flwr.app import RecordDict
from flwr.common.serde import recorddict_from_proto, recorddict_to_proto
from flwr.proto.recorddict_pb2 import RecordDict as Proto
from google.protobuf.message import DecodeError

from fedfuse.core.files import create, replacing
from fedfuse.core.messages import Task
from fedfuse.core.plain_json import dumps
from fedfuse.core.round_files import path_of, rounds_in
from fedfuse.core.secret_key import SecretKey
from fedfuse.experiment.promise import Promise
from fedfuse.federation.checkpoint import KEPT
from fedfuse.federation.client import Clients
from fedfuse.federation.recipe import SCORES
from fedfuse.flower.failures import SpentError
from fedfuse.flower.masking.messages import LETTERS, MASKING
from fedfuse.flower.receipts import describe
from fedfuse.flower.records import CONFIG, REFUSED
from fedfuse.parts.upload.chain import name_of
from fedfuse.parts.upload.noise import PARTIES, parties_in
from fedfuse.privacy.account import Account, told
from fedfuse.privacy.book_files import About, alone_with, read_books, write_books
from fedfuse.privacy.books import Books
from fedfuse.privacy.claim import Visit

ANSWER = ".answer"
BOOKS = ("privacy", ".safetensors")
"""Where a node keeps them, by experiment and client."""


class PartyPrivacy:
    """Of one client with so many examples; ``books`` is its file, ``own_budget`` what the party itself allows."""

    def __init__(self, promise: Promise, books: Path, client: int, examples: int, own_budget: float | None) -> None:
        self.promise, self.file, self.client, self.examples = promise, books, client, examples
        claim = promise.claim
        budgets = [budget for budget in (claim.settings.budget, own_budget) if budget is not None]
        self.budget = min(budgets, default=None)
        self.account = Account(claim, promise.account.key, 1, lambda _client: examples)
        self.hidden_among: int | None = None
        """How many clients agreed on masks for the sum that the next answer is in, if it is in one."""

    def secretive(self, clients: Clients) -> Clients:
        """Who works for one answer: with a secret, and silent about what nothing protects."""
        answers = clients.silence.answers_tests and self.promise.claim.covers_answers
        silence = replace(self.promise.silence(), answers_tests=answers)
        return replace(clients, silence=silence, secret=SecretKey.fresh())

    def visit(self, task: Task) -> Visit:
        """The answer to a task, in public numbers."""
        training = self.account.training_of(task.round, task.client)
        parties = self._parties(task)
        return Visit(self.client, self.examples, training, SCORES in task.asks, parties, self._noise(parties))

    def noise(self, task: Task) -> float:
        """How much of the noise that was planned the sum with the answer has at least."""
        return self._noise(self._parties(task))

    def _noise(self, parties: int) -> float:
        """How much of the noise a sum has at least: this party helps to open none with fewer clients."""
        claim = self.promise.claim
        if claim.sums is None or self.hidden_among is None:
            return 1.0
        across = claim.recipe.protocol.carries == "predictions" and len(claim.bank.prototypes) > 1
        return (1 if across else claim.sums.needed(self.hidden_among)) / parties

    def _parties(self, task: Task) -> int:
        place = self.promise.claim.noise_place
        told_of = task.extras.get(f"{name_of(place)}/{PARTIES}") if place is not None else None
        return 1 if told_of is None else parties_in(told_of)

    def check_budget(self, task: Task) -> None:
        """Raise if the answer would give away more than is allowed."""
        after = self._with(self.visit(task))
        epsilon = self.account.epsilon(after.of(self.client, 0))
        if self.budget is not None and epsilon > self.budget:
            raise SpentError(
                f"the answer would bring epsilon to {epsilon:.4g}, above the budget of {self.budget:g}; this client "
                "takes part no more"
            )

    def enter(self, task: Task) -> None:
        """Into the books, on the disk, before anything leaves; another answer may have been entered meanwhile."""
        with alone_with(self.file):
            self.check_budget(task)
            write_books(self.file, self._with(self.visit(task)), self._about)

    def numbers(self) -> dict[str, Any]:
        """What was given away so far, for the party's eyes and its receipts."""
        settings, books = self.promise.claim.settings, self._read()
        each = {
            against: told(self.account.epsilon(books.of(self.client, about)))
            for about, against in enumerate(self.promise.claim.against)
        }
        return {"unit": settings.unit, "delta": settings.delta, "epsilon": each, "budget": self.budget}

    def _with(self, visit: Visit) -> Books:
        claim = self.promise.claim
        releases = claim.of(visit)
        return self._read().with_more([(self.client, [releases[against] for against in claim.against])])

    def _read(self) -> Books:
        return read_books(self.file, len(self.promise.claim.against), self._about)

    @property
    def _about(self) -> About:
        claim = self.promise.claim
        return {"unit": claim.settings.unit, "against": list(claim.against)}


class KeptAnswers:
    """Answers that the server may ask for again; ``checkpoint_every`` is the server's."""

    def __init__(self, folder: Path, checkpoint_every: int) -> None:
        self.folder, self.reach = folder, KEPT * checkpoint_every

    def recall(self, number: int, digest: str, noise: float) -> RecordDict | None:
        """What was answered to this very task; None if nothing that can be read.

        Nor is there an answer for a sum that can have less noise than was counted when it was made.
        """
        try:
            about, _, body = path_of(self.folder, number, ANSWER).read_bytes().partition(b"\n")
        except OSError:
            return None
        if not _is_about(about.decode("ascii", "replace").split(), digest, body, noise):
            return None
        try:
            return recorddict_from_proto(Proto.FromString(body))
        except (DecodeError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def keep(self, number: int, digest: str, noise: float, content: RecordDict) -> None:
        """For nobody else to read; and forget those that nobody can ask for any more."""
        body = recorddict_to_proto(content).SerializeToString()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(path_of(self.folder, number, ANSWER)) as temporary, create(temporary, private=True) as file:
            file.write(f"{digest} {hashlib.sha256(body).hexdigest()} {noise!r}\n".encode() + body)
        for one in rounds_in(self.folder, ANSWER):
            if not number - self.reach <= one <= number:
                path_of(self.folder, one, ANSWER).unlink(missing_ok=True)


def _is_about(words: list[str], digest: str, body: bytes, noise: float) -> bool:
    """Whether a kept answer is whole, to this task, and counted with no more noise."""
    if words[:2] != [digest, hashlib.sha256(body).hexdigest()] or len(words) != 3:
        return False
    try:
        return float(words[2]) <= noise
    except ValueError:
        return False


def digest_of(content: RecordDict) -> str:
    """The same for the same task, and for no other; why an earlier answer was refused, and masks, are no part of it."""
    plain = RecordDict({name: record for name, record in content.items() if name not in (MASKING, LETTERS)})
    records: dict[str, Any] = {name: record["sha256"] for name, record in describe(plain).items()}
    config: Mapping[str, Any] = content[CONFIG]
    records[CONFIG] = {name: config[name] for name in sorted(config) if name != REFUSED}
    return hashlib.sha256(dumps(records).encode()).hexdigest()
