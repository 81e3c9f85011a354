"""Clients' states on the disk: a round writes those that it changed, and reads those that it needs.

A round writes the states of the clients that it heard into a segment, a file of its own with a piece for each client.
Where each client's newest piece is, is kept in memory and found again from the pieces' headers. A segment of which less
than half is still the newest gives the rest to the segment that is being written. One in which nothing is the newest is
removed as soon as no checkpoint needs it. So the disk holds about two to three times the states that there are.

A checkpoint of round R goes on from the segments up to R: none of them is removed as long as the checkpoint is kept,
and those after R are removed when a run goes on from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from fedfuse.core.errors import RunFolderError
from fedfuse.core.files import copy, create, replacing
from fedfuse.core.messages import Tensors
from fedfuse.core.round_files import path_of, rounds_in
from fedfuse.core.tensor_files import DamagedError, Piece, check_piece, read_piece, read_tensors, write_tensors
from fedfuse.federation.client_states import ClientStates

SUFFIX = ".states"


class Place(NamedTuple):
    """Where a client's newest state is, the round after which the client had it, and what tells it from any other."""

    segment: int
    start: int
    length: int
    round: int
    is_empty: bool
    stamp: int


@dataclass
class Segment:
    """What one file holds, and how many of its bytes are clients' newest states."""

    clients: list[int] = field(default_factory=list)
    bytes: int = 0
    alive: int = 0

    def is_sparse_without(self, lost: int) -> bool:
        return self.alive - lost < self.bytes / 2


class Tally(NamedTuple):
    """How many clients have a place, the sum of their rounds, and their stamps together: others if any state is."""

    clients: int = 0
    rounds: int = 0
    stamps: int = 0

    def without(self, place: Place) -> Tally:
        return Tally(self.clients - 1, self.rounds - place.round, self.stamps ^ place.stamp)

    def plus(self, place: Place) -> Tally:
        return Tally(self.clients + 1, self.rounds + place.round, self.stamps ^ place.stamp)


class StoredStates(ClientStates):
    """The states of a store after a round, until the store goes on to the next."""

    def __init__(self, store: StateStore, number: int) -> None:
        self.store, self.number = store, number

    def after(self, number: int, changed: Iterable[tuple[int, Tensors]]) -> StoredStates:
        self._current().write(number, changed)
        return StoredStates(self.store, number)

    def __getitem__(self, client: int) -> Tensors:
        return self._current().read(client)

    def __contains__(self, client: object) -> bool:
        place = self._current().places.get(client) if isinstance(client, int) else None
        return place is not None and not place.is_empty

    def __iter__(self) -> Iterator[int]:
        return (client for client, place in self._current().places.items() if not place.is_empty)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _current(self) -> StateStore:
        if self.store.number != self.number:
            raise LookupError(f"the states after round {self.number} are gone: the store has those after another one")
        return self.store


class StateStore:
    """The files, and where in them everything is."""

    def __init__(self, folder: Path, number: int = 0) -> None:
        self.folder = folder
        self.number = number
        """The round after which the states are."""
        self.places: dict[int, Place] = {}
        self.tally = Tally()
        self._segments: dict[int, Segment] = {}
        self._dead: dict[int, int] = {}
        """Segments in which nothing is the newest, and since which round."""
        self._checkpoints: Sequence[int] = ()

    @staticmethod
    def opened(folder: Path, number: int, checkpoints: Sequence[int]) -> StateStore:
        """What the files of the rounds up to ``number`` say; what is not as it was written is missing in the tally."""
        store = StateStore(folder, number)
        for segment in rounds_in(folder, SUFFIX):
            if segment <= number:
                store._place(_pieces(store._path(segment), segment), number)
        store._checkpoints = checkpoints
        return store

    def read(self, client: int) -> Tensors:
        """A client's newest state; it must have one."""
        place = self.places[client]
        path = self._path(place.segment)
        try:
            with path.open("rb", buffering=0) as file:
                return read_tensors(file, read_piece(file, place.start))
        except (DamagedError, FileNotFoundError) as error:
            raise RunFolderError(
                f"{path} was damaged or removed while the run was using it ({error}); --resume goes on from the last "
                "checkpoint that is whole"
            ) from error

    def write(self, number: int, changed: Iterable[tuple[int, Tensors]]) -> None:
        """Put the states of a round's clients away. Nothing is written if nobody has one."""
        written: dict[int, Place] = {}
        with ExitStack() as opened:
            file: BinaryIO | None = None
            for client, state in changed:
                if state or client in self.places or client in written:
                    file = file or opened.enter_context(_new(self._path(number)))
                    written[client] = _appended(file, client, state, number)
                del state  # nothing is held here while the next client works
            if file is not None:
                written |= {client: self._moved(file, number, client) for client in self._sparse(written)}
                size = file.tell()
        self._place(written.items(), number)
        if written:
            self._segments[number].bytes = size  # a client that was heard twice has an older piece in it
        self.number = number
        self._remove_what_nobody_needs()

    def keep(self, checkpoints: Sequence[int]) -> None:
        """These rounds' checkpoints are there, and no others: what only others needed can go."""
        self._checkpoints = checkpoints
        self._remove_what_nobody_needs()

    def _place(self, written: Iterable[tuple[int, Place]], number: int) -> None:
        """Pieces become their clients' newest."""
        for client, place in written:
            segment = self._segments.setdefault(place.segment, Segment())
            segment.clients.append(client)
            segment.bytes += place.length
            segment.alive += place.length
            before = self.places.get(client)
            self.places[client] = place
            self.tally = (self.tally.without(before) if before else self.tally).plus(place)
            if before is not None:
                self._segments[before.segment].alive -= before.length
                if not self._segments[before.segment].alive:
                    self._dead[before.segment] = number

    def _sparse(self, written: Mapping[int, Place]) -> list[int]:
        """Clients whose newest state is in a segment of which less than half will be alive after this round."""
        lost: Counter[int] = Counter()
        for client in written.keys() & self.places.keys():
            lost[self.places[client].segment] += self.places[client].length
        sparse = [number for number, bytes_ in lost.items() if self._segments[number].is_sparse_without(bytes_)]
        return [
            client
            for number in sorted(sparse)
            for client in self._segments[number].clients
            if self.places[client].segment == number and client not in written
        ]

    def _moved(self, file: BinaryIO, number: int, client: int) -> Place:
        """A client's piece as it is, copied to the end of another segment."""
        place, start = self.places[client], file.tell()
        with self._path(place.segment).open("rb", buffering=0) as older:
            older.seek(place.start)
            copy(older, file, place.length)
        return place._replace(segment=number, start=start)

    def _remove_what_nobody_needs(self) -> None:
        for number, dead_since in list(self._dead.items()):
            if not any(number <= checkpoint < dead_since for checkpoint in self._checkpoints):
                self._path(number).unlink(missing_ok=True)
                del self._dead[number], self._segments[number]

    def _path(self, number: int) -> Path:
        return path_of(self.folder, number, SUFFIX)


def forget_segments_after(folder: Path, number: int) -> None:
    """Remove what later rounds wrote."""
    for segment in rounds_in(folder, SUFFIX):
        if segment > number:
            path_of(folder, segment, SUFFIX).unlink()


def _pieces(path: Path, segment: int) -> Iterator[tuple[int, Place]]:
    """The clients' pieces in a segment that are as they were written."""
    with path.open("rb") as file:
        size, start = path.stat().st_size, 0
        while start < size:
            try:
                piece = read_piece(file, start)
            except DamagedError:
                return  # nobody knows where the next one begins
            if _is_sound(file, piece):
                length, about = piece.end - start, piece.about
                place = Place(segment, start, length, about["round"], not piece.tensors, _stamp(piece.sha256))
                yield about["client"], place
            start = piece.end


def _is_sound(file: BinaryIO, piece: Piece) -> bool:
    try:
        check_piece(file, piece)
    except DamagedError:
        return False
    numbers = [piece.about.get(key) for key in ("client", "round")] if isinstance(piece.about, dict) else [None]
    return piece.sha256 is not None and all(type(number) is int for number in numbers)


@contextmanager
def _new(path: Path) -> Iterator[BinaryIO]:
    with replacing(path) as temporary, create(temporary) as file:
        yield file


def _appended(file: BinaryIO, client: int, state: Tensors, number: int) -> Place:
    start = file.tell()
    written = write_tensors(file, state, {"client": client, "round": number})
    return Place(number, start, written.length, number, not state, _stamp(written.sha256))


def _stamp(sha256: str | None) -> int:
    """Enough of a digest to tell one state from another, in a number that takes little memory."""
    return int((sha256 or "")[:15], 16)
