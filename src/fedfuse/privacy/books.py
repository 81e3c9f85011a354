"""What every client of a run has released so far: in a checkpoint a table, here by client.

A row is (against whom, client, multiplier, rate, times); rows of one release are one row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from fedfuse.core.errors import DataError
from fedfuse.core.messages import Tensors
from fedfuse.core.releases import Release

ROWS = "releases"
Page = dict[tuple[float, float], int]
"""One client's releases: how often there was one of this multiplier and rate."""


class Books:
    """Everybody's releases, by whom they are about: ``pages[about][client]``. They are not changed, but continued."""

    def __init__(self, pages: Sequence[Mapping[int, Page]]) -> None:
        self.pages = pages

    @staticmethod
    def read(kinds: int, memory: Tensors) -> Books:
        """From what a server remembers; there are so many kinds of those whom releases are about."""
        pages: list[dict[int, Page]] = [{} for _ in range(kinds)]
        rows = memory.get(ROWS, torch.empty(0, 5))
        if rows.ndim != 2 or rows.shape[1] != 5 or not all(_is_sound(row, kinds) for row in rows.tolist()):
            raise DataError("the books on privacy are of another experiment, or damaged")
        for about, client, multiplier, rate, times in rows.tolist():
            pages[int(about)].setdefault(int(client), {})[multiplier, rate] = int(times)
        return Books(pages)

    def written(self) -> dict[str, Tensor]:
        rows = [
            (about, client, multiplier, rate, times)
            for about, pages in enumerate(self.pages)
            for client, page in sorted(pages.items())
            for (multiplier, rate), times in sorted(page.items())
        ]
        return {ROWS: torch.tensor(rows, dtype=torch.float64)} if rows else {}

    def with_more(self, visits: Iterable[tuple[int, Sequence[Sequence[Release]]]]) -> Books:
        """And what clients have released in a round, about each."""
        pages = [dict(own) for own in self.pages]
        for client, releases in visits:
            for own, more in zip(pages, releases, strict=True):
                page = dict(own.get(client, {}))
                for release in more:
                    key = release.multiplier, release.rate
                    page[key] = page.get(key, 0) + release.times
                own[client] = page
        return Books(pages)

    def of(self, client: int, about: int) -> tuple[Release, ...]:
        return as_releases(self.pages[about].get(client, {}))


def as_releases(page: Page) -> tuple[Release, ...]:
    return tuple(Release(multiplier, rate, times) for (multiplier, rate), times in sorted(page.items()))


def _is_sound(row: list[float], kinds: int) -> bool:
    about, client, multiplier, rate, times = row
    whole = all(number == number // 1 for number in (about, client, times))
    return whole and 0 <= about < kinds and 0 <= multiplier < math.inf and 0 <= rate <= 1 and 0 <= times < math.inf
