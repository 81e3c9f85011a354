"""The accountant of a run: keeps the books, says who has budget left, and tells everybody's epsilon."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from torch import Tensor

from fedfuse.core.messages import Tensors
from fedfuse.core.randomness import Key
from fedfuse.core.releases import Release
from fedfuse.federation.accounting import Accounting, Attended, PrivacyRecord
from fedfuse.privacy.accountants import epsilon_of
from fedfuse.privacy.books import ROWS, Books, as_releases
from fedfuse.privacy.claim import Claim, Visit
from fedfuse.runtime.training import TrainingSettings


class Account(Accounting):
    """Of one experiment with so many clients."""

    def __init__(self, claim: Claim, key: Key, clients: int, sizes: Callable[[int], int]) -> None:
        """``sizes`` is how many examples a client has, where it does not say so itself."""
        self.claim, self.key, self.clients, self.sizes = claim, key, clients, sizes
        self._latest: tuple[Tensor | None, Books] | None = None

    def spent(self, books: Tensors, clients: Collection[int]) -> set[int]:
        if self.claim.settings.budget is None:
            return set()
        known = self._read(books)
        return {client for client in clients if not self._has_budget(known, client)}

    def _has_budget(self, books: Books, client: int) -> bool:
        """Whether one more visit, as it is planned, stays within the budget."""
        return self._is_within(books, self.planned(client, is_first=client not in books.pages[0]))

    def _is_within(self, books: Books, visit: Visit) -> bool:
        budget = self.claim.settings.budget
        more = self.claim.of(visit)[self.claim.against[0]]
        return budget is None or self.epsilon((*books.of(visit.client, 0), *more)) <= budget

    def objection(self, books: Tensors, attended: Sequence[Attended]) -> str | None:
        if self.claim.settings.budget is None or not self.claim.shares_noise:
            return None
        known = self._read(books)
        exceeding = [visit.client for visit in self._visits(attended) if not self._is_within(known, visit)]
        if not exceeding:
            return None
        counted = sum(one.is_counted for one in attended)
        return (
            f"only {counted} of {len(attended)} clients are in the sum, and their noise is too little for the budget "
            f"of client {exceeding[0]}"
        )

    def after(self, books: Tensors, attended: Sequence[Attended]) -> Tensors:
        against = self.claim.against
        visits = ((visit.client, self.claim.of(visit)) for visit in self._visits(attended))
        known = self._read(books).with_more((client, [told[one] for one in against]) for client, told in visits)
        written = known.written()
        self._latest = (written.get(ROWS), known)
        return written

    def record(self, books: Tensors) -> PrivacyRecord:
        known = self._read(books)
        each = self._everybodys(known, 0)
        most = max(each, key=lambda client: (each[client], -client), default=None)
        server = self._everybodys(known, 1) if "server" in self.claim.against else {}
        return PrivacyRecord(
            told(each[most]) if most is not None else 0.0,
            most,
            server=told(max(server.values())) if server else None,
            left=self.clients - len(self.spent(books, known.pages[0])) if self.claim.settings.budget else None,
        )

    def report(self, books: Tensors) -> Mapping[str, Any]:
        known = self._read(books)
        parts: dict[str, Any] = {}
        for about, against in enumerate(self.claim.against):
            each = self._everybodys(known, about)
            numbers = {str(client): told(each[client]) for client in sorted(each)}
            parts[against] = {"epsilon": told(max(each.values(), default=0.0)), "clients": numbers}
        return {"epsilon": parts[self.claim.against[0]]["epsilon"], "against": parts}

    def _everybodys(self, books: Books, about: int) -> dict[int, float]:
        """Many clients have released the same."""
        known: dict[tuple[Release, ...], float] = {}
        each = {}
        for client, page in books.pages[about].items():
            releases = as_releases(page)
            if releases not in known:
                known[releases] = self.epsilon(releases)
            each[client] = known[releases]
        return each

    def epsilon(self, releases: Sequence[Release]) -> float:
        settings = self.claim.settings
        return epsilon_of(releases, settings.delta, settings.accountant)

    def planned(self, client: int, is_first: bool) -> Visit:
        """A client's visit, if all goes as it should."""
        return Visit(client, self._size(client), self.claim.training, is_asked=is_first)

    def _size(self, client: int) -> int:
        """Of no matter, and perhaps not known, where steps of training are not what is counted."""
        return self.sizes(client) if self.claim.covers_models else 0

    def _read(self, books: Tensors) -> Books:
        rows = books.get(ROWS)
        if self._latest is None or self._latest[0] is not rows:
            self._latest = (rows, Books.read(len(self.claim.against), books))
        return self._latest[1]

    def _visits(self, attended: Sequence[Attended]) -> list[Visit]:
        """What came of a round."""
        here = Counter(one.prototype for one in attended)
        parties = {one.client: one.parties or here[one.prototype] for one in attended}
        noise: dict[str, float] = {}
        for one in attended:
            if one.is_counted:
                noise[self._sum_of(one)] = noise.get(self._sum_of(one), 0.0) + 1 / parties[one.client]
        return [
            Visit(
                one.client,
                one.examples or self._size(one.client),
                self.training_of(one.round, one.client),
                one.is_asked,
                parties[one.client],
                noise.get(self._sum_of(one), 0.0),
                one.is_counted,
            )
            for one in attended
        ]

    def _sum_of(self, one: Attended) -> str:
        """Which sum a client is in: weights are added inside a prototype, predictions across all."""
        return "" if self.claim.recipe.protocol.carries == "predictions" else one.prototype

    def training_of(self, number: int, client: int) -> TrainingSettings:
        """A client's in a round, with the number of epochs that was drawn for it, as the client itself draws it."""
        visit = self.key.child("round", number, "client", client)
        return self.claim.training.of(self.key.child("client", client), visit)


def told(epsilon: float) -> float | None:
    """As a log can hold it."""
    return epsilon if math.isfinite(epsilon) else None
