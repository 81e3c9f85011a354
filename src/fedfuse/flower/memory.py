"""What a node keeps of its client between rounds: a few files, which outlive the node's process.

A state is stored under the round after which it was made, with the round it went on from. The server says from which
one the next task goes on, because a state of a round that the server never finished must not count. It may fall back as
far as its older checkpoint (two are kept): therefore all states since then stay, and those that they went on from.
"""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError

from fedfuse.core.errors import DataError
from fedfuse.core.messages import Tensors
from fedfuse.core.tensor_files import read_safetensors, write_safetensors
from fedfuse.federation.checkpoint import KEPT


class Memory:
    """One client's states of one experiment; ``checkpoint_every`` is the server's."""

    def __init__(self, folder: Path, checkpoint_every: int) -> None:
        self.folder = folder
        self.reach = KEPT * checkpoint_every

    def recall(self, number: int) -> Tensors:
        """The state after round ``number``; round 0 is before the first, when there is none."""
        if number == 0:
            return {}
        try:
            return read_safetensors(self._file(number))[0]
        except (SafetensorError, OSError) as error:
            raise DataError(
                f"{self._file(number)}, the client's state after round {number}, cannot be read; the client cannot go "
                "on without it: restore the file, or run the experiment anew"
            ) from error

    def store(self, number: int, went_on_from: int, state: Tensors) -> None:
        """Keep a state, and forget those that no task can go on from any more."""
        write_safetensors(self._file(number), state, {"went_on_from": went_on_from})
        origins = {one: self._origin(one) for one in self._rounds() if number - self.reach <= one <= number}
        for one in self._rounds():
            if one not in origins and one not in origins.values():
                self._file(one).unlink()

    def _rounds(self) -> list[int]:
        return sorted(int(path.stem.removeprefix("round-")) for path in self.folder.glob("round-*.safetensors"))

    def _origin(self, number: int) -> int:
        return int(read_safetensors(self._file(number))[1]["went_on_from"])

    def _file(self, number: int) -> Path:
        return self.folder / f"round-{number:06d}.safetensors"
