"""Who does the server's heavy work: this process, unless the engine has other processes for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

Progress = Callable[[str, int, int], None]
"""Told (what, done, total) during long server work."""


def silence(_what: str, _done: int, _total: int) -> None:
    """Progress that nobody wants to hear of."""


class Pool:
    """This process itself. The pool of an engine may be in other processes, and give the same bits.

    So ``work`` must be able to travel, must depend on nothing but itself and what it is called with, and must fix the
    number of its threads. ``what`` names it where it is reported that it was lost and done anew.
    """

    def map(
        self,
        what: str,
        work: Callable[[Item], Result],
        items: Sequence[Item],
    ) -> Iterator[tuple[int, Result]]:
        """Work on every item alone; each result with its item's place, in any order."""
        for place, item in enumerate(items):
            yield place, work(item)

    def run(
        self,
        what: str,
        work: Callable[[Progress], Result],
        progress: Progress,
    ) -> Result:
        """Do one long piece of work, which tells how far it is."""
        return work(progress)

    def each(
        self,
        what: str,
        works: Sequence[Callable[[Progress], Result]],
        progress: Progress,
    ) -> list[Result]:
        """Do several long pieces of work, side by side if there is somebody for it."""
        return [self.run(what, work, progress) for work in works]


IN_PROCESS = Pool()


def in_order(results: Iterable[tuple[int, Result]]) -> Iterator[Result]:
    """Results by their places, those that came too early kept until it is their turn."""
    early: dict[int, Result] = {}
    turn = 0
    for place, result in results:
        early[place] = result
        while turn in early:
            yield early.pop(turn)
            turn += 1
