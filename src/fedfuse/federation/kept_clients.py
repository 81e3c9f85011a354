"""Every client's model of every round, if the experiment wants them: a file each, as it is found in any run folder.

What is kept is the model as the server knows it: what came up, unpacked, and where clients keep their models to
themselves, the one that a client goes on with.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fedfuse.core.messages import Tensors, Update
from fedfuse.core.round_files import path_of
from fedfuse.core.weights import Weights
from fedfuse.models.interface import Interface
from fedfuse.models.saved import save_model
from fedfuse.parts.protocol.nothing import KEPT_MODEL
from fedfuse.runtime.bank import ModelBank

if TYPE_CHECKING:
    from fedfuse.federation.server import Federation

FOLDER = "clients"
"""Where they lie in a run's folder."""
BYTES, HEADER = 4, 1500
"""Of a number, and of what a file says besides, about."""


def client_file(run: Path, number: int, client: int) -> Path:
    """The model of a client after its work in a round."""
    return path_of(run / FOLDER, number, "") / f"{client}.safetensors"


def kept_bytes(federation: Federation) -> int:
    """About how much all rounds keep, if all models are equally often drawn."""
    clients = federation.prototypes.clients_of
    sizes = {name: federation.bank.layout(name).size * BYTES + HEADER for name in clients}
    mean = sum(number * sizes[name] for name, number in clients.items()) / sum(clients.values())
    return round(federation.settings.rounds * federation.wanted * mean)


@dataclass(frozen=True)
class ClientKeeper:
    """What is needed to write a client's model as one that can be used."""

    bank: ModelBank
    interface: Interface

    def of_round(self, number: int, log: Path | None) -> KeptClients | None:
        """Who keeps those of one round beside the log; nobody, if nothing is written at all."""
        return None if log is None else KeptClients(self, log.parent, number)

    def write(self, path: Path, prototype: str, weights: Weights) -> None:
        bank = self.bank
        architecture, network = bank.architectures[prototype], bank.network(prototype)
        save_model(path, architecture, bank.input_shape, bank.classes, weights, self.interface, network)


@dataclass(frozen=True)
class KeptClients:
    """One round's."""

    keeper: ClientKeeper
    run: Path
    number: int

    def keep(self, update: Update, state: Tensors) -> None:
        """A round that is played again writes the same files again."""
        weights = update.weights
        if not weights and KEPT_MODEL in state:
            weights = Weights(state[KEPT_MODEL], self.keeper.bank.layout(update.prototype))
        if weights:
            self.keeper.write(client_file(self.run, self.number, update.client), update.prototype, weights)

    def forget(self, client: int) -> None:
        """One that was refused after all."""
        client_file(self.run, self.number, client).unlink(missing_ok=True)
