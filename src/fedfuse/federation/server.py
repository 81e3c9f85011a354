"""The server of a federation: all that its rounds are made of, their start, and the next one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fedfuse.core.randomness import Key
from fedfuse.federation.accounting import Accounting
from fedfuse.federation.clock.clock import Clock
from fedfuse.federation.engine import Engine
from fedfuse.federation.events import EventLog
from fedfuse.federation.kept_clients import ClientKeeper
from fedfuse.federation.prototypes import Prototypes, prototypes_of
from fedfuse.federation.recipe import Recipe
from fedfuse.federation.round import Round
from fedfuse.federation.sampling import clients_per_round, sample
from fedfuse.federation.settings import EvaluationSettings, FederationSettings
from fedfuse.federation.state import ServerState, Snapshot
from fedfuse.federation.sums.summation import Summation
from fedfuse.federation.visits import Visits
from fedfuse.parts.context import ServerView
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.evaluate import Evaluator
from fedfuse.runtime.source import Source


@dataclass(frozen=True)
class Federation:
    """Everything a round is made of, except the state that goes from round to round."""

    recipe: Recipe
    settings: FederationSettings
    evaluation: EvaluationSettings
    clients: int
    bank: ModelBank
    engine: Engine
    test: Evaluator
    validation: Evaluator | None
    source: Source | None
    key: Key
    log: EventLog
    has_wire: bool = True
    """Whether what the parties send leaves the machine; else it is not counted."""
    judging: Evaluator | None = None
    """The validation examples again, with the experiment's metrics, where rounds are measured on them too."""
    keeping: ClientKeeper | None = None
    """Who keeps clients' models, if the experiment wants them."""
    clock: Clock | None = None
    """What gives rounds simulated seconds, if the experiment wants them."""
    accounting: Accounting | None = None
    """Who counts what rounds give away, if privacy is promised."""
    sums: Summation | None = None
    """How updates add up, where the server sees nothing but sums of them."""

    def start(self) -> Snapshot:
        """The federation before its first round."""
        view = self.view(0, self.key.child("initialise"))
        with self.bank.compute.at_work():
            weights = {prototype: self.recipe.start.begin(view, prototype) for prototype in self.bank.prototypes}
        return Snapshot(ServerState(round=0, weights=weights))

    def advance(self, before: Snapshot) -> Snapshot:
        """Play one round."""
        with self.bank.compute.at_work():
            return Round(self, before).play()

    @cached_property
    def prototypes(self) -> Prototypes:
        """The prototype that each client runs."""
        return prototypes_of(self.bank.prototypes, self.settings, self.clients)

    @cached_property
    def visits(self) -> Visits:
        """How often each client was heard, as far as somebody asked."""
        return Visits(self.clients)

    @property
    def wanted(self) -> int:
        """How many clients a round is about."""
        return clients_per_round(self.settings, self.clients)

    def chosen(self, key: Key) -> list[int]:
        """Who takes part in a round, if all are there."""
        return sample(self.clients, self.wanted, key)

    def view(self, number: int, key: Key) -> ServerView:
        """What all parts see of a round, before it is known what they see of the rounds before."""
        return ServerView(
            round=number,
            key=key,
            common=self.key,
            weights={},
            memory={},
            clients_of=self.prototypes.clients_of,
            visits={},
            bank=self.bank,
            validation=self.validation,
            source=self.source,
            scores=self.recipe.scores,
            progress=self.log.tick,
        )
