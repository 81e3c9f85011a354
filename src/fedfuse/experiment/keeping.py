"""The models that a run leaves in its folder: those of its last round, and those of its best.

The best round's are written before the checkpoint that knows of that round, and removed when no checkpoint knows of a
time at which they were the best. So whatever a run goes on from, the models that were the best then are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedfuse.core.errors import ConfigError
from fedfuse.core.round_files import rounds_in
from fedfuse.core.weights import Weights
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.federation import Snapshot
from fedfuse.federation.folder import RunFolder
from fedfuse.federation.kept_clients import ClientKeeper
from fedfuse.models.interface import Interface
from fedfuse.parts.protocol.nothing import KEPT_MODEL
from fedfuse.runtime.bank import ModelBank

if TYPE_CHECKING:
    from fedfuse.experiment.assembly import Built


def client_keeper(config: ExperimentConfig, bank: ModelBank, interface: Interface) -> ClientKeeper | None:
    """Who keeps clients' models of every round, if the experiment wants that and there are any."""
    if not config.federation.keep_clients:
        return None
    if config.recipe.protocol.carries == "layer":
        raise ConfigError(
            f"federation.keep_clients keeps whole models, but clients with protocol {config.recipe.protocol.kind} send "
            "one layer at a time; remove it"
        )
    return ClientKeeper(bank, interface)


class Keeping:
    """Writes a run's models."""

    def __init__(self, built: Built, folder: RunFolder) -> None:
        self.built, self.folder = built, folder
        self._writer = ClientKeeper(built.federation.bank, built.interface)

    def last(self, snapshot: Snapshot) -> int:
        """The server's final models, or the clients' own where the server has none; how many they are."""
        return self._write(self.folder.final, snapshot)

    def best(self, snapshot: Snapshot) -> None:
        """The same of a round that is better than all before it."""
        self._write(self.folder.best_of(snapshot.server.round), snapshot)

    def keep_best(self, rounds: Sequence[int | None]) -> None:
        """Of the best rounds' models, keep those of these, and of rounds that no checkpoint has yet."""
        for number in rounds_in(self.folder.best, ""):
            if number not in rounds and number < max((one for one in rounds if one is not None), default=0):
                self.folder.remove(self.folder.best_of(number))

    def fall_back_to(self, number: int) -> None:
        """Forget what rounds after this one had left, which are played again."""
        for folder in (self.folder.best, self.folder.clients):
            for later in rounds_in(folder, ""):
                if later > number:
                    self.folder.remove(folder / f"round-{later:06d}")

    def _write(self, folder: Path, snapshot: Snapshot) -> int:
        written = 0
        for path, prototype, weights in self._models(folder, snapshot):
            self._writer.write(path, prototype, weights)
            written += 1
        return written

    def _models(self, folder: Path, snapshot: Snapshot) -> Iterator[tuple[Path, str, Weights]]:
        """Each model's file, prototype and weights, one after another."""
        if self.built.config.recipe.has_server_model:
            for name, weights in snapshot.server.weights.items():
                yield folder / f"{name}.safetensors", name, weights
            return
        names, bank = self.built.federation.prototypes, self.built.federation.bank
        for client, state in snapshot.clients.items():
            if KEPT_MODEL in state:
                weights = Weights(state[KEPT_MODEL], bank.layout(names[client]))
                yield folder / "clients" / f"{client}.safetensors", names[client], weights
