"""What a round measures on the test split: prototypes before and after fusion, the ensemble, clients' own models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from fedfuse.core.messages import EXAM, Update
from fedfuse.core.plain_json import finite
from fedfuse.core.weights import Weights
from fedfuse.exchange.base import PREDICTIONS
from fedfuse.federation.recipe import Recipe
from fedfuse.federation.settings import EvaluationSettings, FederationSettings
from fedfuse.federation.state import PrototypeRecord
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.evaluate import Evaluator, Score
from fedfuse.runtime.view import ServerView


@dataclass(frozen=True)
class Examiner:
    """The measurements of one round."""

    round: int
    recipe: Recipe
    settings: FederationSettings
    evaluation: EvaluationSettings
    bank: ModelBank
    test: Evaluator

    @property
    def is_due(self) -> bool:
        """Whether this round is evaluated."""
        return self.round % self.evaluation.every == 0 or self.round == self.settings.rounds

    @property
    def asks(self) -> tuple[str, ...]:
        """What tasks ask for, so that clients' own models can be measured."""
        wanted = self.evaluation.clients
        if wanted is None:
            wanted = self.recipe.exchange.carries in ("predictions", "nothing")
        return (EXAM,) if wanted and self.is_due else ()

    def prototype(
        self, name: str, merged: Weights | None, weights: Weights, own: Sequence[Update], report: Mapping[str, float]
    ) -> PrototypeRecord:
        """One prototype: the server's model, or the mean over this round's clients where only they have one."""
        if not self.is_due:
            return PrototypeRecord(fusion=report)
        if not self.recipe.has_server_model:
            return _mean_of([self._own_score(update) for update in own if update.exam])
        after = self._score(name, weights)
        before = None
        if merged is not None and self.recipe.fuse.makes_students:
            before = after if merged.equals(weights) else self._score(name, merged)
        return PrototypeRecord(after.accuracy, finite(after.loss), before.accuracy if before else None, report)

    def clients(self, updates: Sequence[Update]) -> dict[int, float]:
        """Accuracy of the own models of clients that were asked."""
        return {update.client: self._own_score(update).accuracy for update in updates if update.exam}

    def ensemble(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> float | None:
        """Accuracy of what the students imitate: asked by the server, or as the clients answered themselves."""
        if not teachers or not self.is_due or not self.evaluation.ensemble:
            return None
        ensemble = self.recipe.fuse.ensemble(view, merged, teachers)
        if ensemble:
            return self.test.score_logits(ensemble).accuracy
        examined = [update for update in teachers if update.exam]
        answers = self.recipe.exchange.combine_exams(examined) if examined else None
        return self.test.score_table(answers.log_probabilities).accuracy if answers else None

    def _score(self, prototype: str, weights: Weights) -> Score:
        return self.test.score(self.bank.lend(prototype, weights))

    def _own_score(self, update: Update) -> Score:
        return self.test.score_table(update.exam[PREDICTIONS])


def _mean_of(scores: Sequence[Score]) -> PrototypeRecord:
    if not scores:
        return PrototypeRecord()
    return PrototypeRecord(fmean(score.accuracy for score in scores), finite(fmean(score.loss for score in scores)))
