"""What a node keeps of its client between rounds: a few files, which outlive the node's process.

A state is stored under the round after which it was made, with the round it went on from. The server says from which
one the next task goes on, because a state of a round that the server never finished must not count. It may fall back as
far as its older checkpoint (two are kept): therefore all states since then stay, and those that they went on from.
"""

from __future__ import annotations

from pathlib import Path

from fedfuse.core.errors import DataError
from fedfuse.core.messages import Tensors
from fedfuse.core.round_files import path_of, rounds_in
from fedfuse.core.tensor_files import DamagedError, read_header, read_safetensors, write_safetensors
from fedfuse.federation.checkpoint import KEPT, SUFFIX


class Memory:
    """One client's states of one experiment; ``checkpoint_every`` is the server's."""

    def __init__(self, folder: Path, checkpoint_every: int) -> None:
        self.folder = folder
        self.reach = KEPT * checkpoint_every

    def recall(self, number: int) -> Tensors:
        """The state after round ``number``; round 0 is before the first, when there is none."""
        if number == 0:
            return {}
        file = path_of(self.folder, number, SUFFIX)
        try:
            return read_safetensors(file)[0]
        except (DamagedError, OSError) as error:
            raise DataError(
                f"{file}, the client's state after round {number}, cannot be read ({error}); the client cannot go on "
                "without it: restore the file, or run the experiment anew"
            ) from error

    def store(self, number: int, went_on_from: int, state: Tensors) -> None:
        """Keep a state, for nobody else to read, and forget those that no task can go on from any more."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = path_of(self.folder, number, SUFFIX)
        write_safetensors(file, state, {"went_on_from": went_on_from}, private=True)
        rounds = rounds_in(self.folder, SUFFIX)
        origins = {one: self._origin(one) for one in rounds if number - self.reach <= one <= number}
        if None in origins.values():
            return  # nobody knows which one the damaged one went on from
        for one in rounds:
            if one not in origins and one not in origins.values():
                path_of(self.folder, one, SUFFIX).unlink()

    def _origin(self, number: int) -> int | None:
        """The round that the state of a round went on from; None if it cannot be known."""
        try:
            origin = read_header(path_of(self.folder, number, SUFFIX)).about["went_on_from"]
        except (DamagedError, KeyError, TypeError):
            return None
        return origin if type(origin) is int else None
