"""How much work a round is, in floating-point operations: of a client, and of the server.

Counted are networks' passes over examples and public inputs, a training step as three, and the merge as a product and a
sum for each weight of each client. Optimisers, penalties without a network, generators and scores are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from fedfuse.core.messages import Task, Update
from fedfuse.federation.recipe import LOCAL, PROTOCOL, Recipe
from fedfuse.models.operations import BACKWARD, operations_of
from fedfuse.parts.fuse import FusionWork
from fedfuse.parts.screen import Screened
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.source import Source
from fedfuse.runtime.training import TrainingSettings


@dataclass(frozen=True)
class RoundWork:
    """The experiment as far as work depends on it."""

    recipe: Recipe
    bank: ModelBank
    training: TrainingSettings

    def of_client(self, task: Task, update: Update, public: Source | None) -> float:
        """What a client did for its answer, by its own words; ``public`` are the round's public inputs.

        Nothing, where it claims to have no examples, or less than no steps.
        """
        if not update.examples:
            return 0.0
        usual = self.training.steps(update.examples)
        steps = max(0, update.metrics.get("steps", usual))
        epochs = self.training.epochs * steps / usual
        shown = epochs * update.examples * (BACKWARD + self.recipe.local.passes(task.of(LOCAL)))
        about = 0 if public is None else self.recipe.protocol.passes(task.of(PROTOCOL), len(public), steps)
        return (shown + about) * self._per_input[task.prototype]

    def of_server(self, screened: Screened, report: Mapping[str, Mapping[str, float]], public: Source | None) -> float:
        """The merge, and the fusion as it went according to its report."""
        merging = sum(2 * self._merged(update) for update in screened.counted)
        if public is None:
            return merging
        steps = {prototype: said.get("steps", 0) for prototype, said in report.items()}
        clients = Counter(update.prototype for update in screened.teachers)
        passes = self.recipe.fuse.passes(FusionWork(len(public), public.draw is not None, clients, steps))
        return merging + sum(number * self._per_input[prototype] for prototype, number in passes.items())

    def _merged(self, update: Update) -> int:
        """Weights that a client brought to the merge, which may have taken them away."""
        whole = self.recipe.protocol.carries == "weights"
        return self.bank.layout(update.prototype).size if whole else update.weights.layout.size

    @cached_property
    def _per_input(self) -> dict[str, float]:
        """Operations of one input's way through each prototype's network."""
        return {p: operations_of(self.bank.network(p), self.bank.input_shape) for p in self.bank.prototypes}
