"""What a round measures on the test split: prototypes before and after fusion, the ensemble, clients' own models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from fedfuse.core.messages import TEST_OUTPUTS, Update
from fedfuse.core.plain_json import finite
from fedfuse.core.weights import Weights
from fedfuse.federation.predictions import combined_on_test
from fedfuse.federation.recipe import Recipe
from fedfuse.federation.settings import EvaluationSettings, FederationSettings
from fedfuse.federation.state import PrototypeRecord
from fedfuse.parts.context import ServerView
from fedfuse.parts.fuse import EnsembleOnly
from fedfuse.parts.protocol.base import PREDICTIONS
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.evaluate import Evaluator, Score, Values


@dataclass(frozen=True)
class RoundEvaluation:
    """The measurements of one round."""

    round: int
    recipe: Recipe
    settings: FederationSettings
    evaluation: EvaluationSettings
    bank: ModelBank
    test: Evaluator
    validation: Evaluator | None = None
    """What else is measured on, where the experiment wants it."""

    @property
    def is_due(self) -> bool:
        """Whether this round is evaluated."""
        return self.round % self.evaluation.every == 0 or self.round == self.settings.rounds

    @property
    def asks(self) -> tuple[str, ...]:
        """What tasks ask for, so that clients' own models can be measured."""
        wanted = self.evaluation.clients
        if wanted is None:
            wanted = self.recipe.protocol.carries in ("predictions", "nothing")
        return (TEST_OUTPUTS,) if wanted and self.is_due else ()

    def prototype(
        self, name: str, merged: Weights | None, weights: Weights, own: Tensor, report: Mapping[str, float]
    ) -> PrototypeRecord:
        """One prototype: the server's model, or the mean over its clients' latest ones where only they have any.

        ``own`` has accuracy, loss and metrics of those clients' models, a row each.
        """
        if not self.is_due:
            return PrototypeRecord(fusion=report)
        if not self.recipe.has_server_model:
            return _mean_of(own, self.evaluation.metric_names)
        after = self._score(name, weights)
        validation = _values(self.validation.score(self.bank.lend(name, weights))) if self.validation else {}
        record = PrototypeRecord(after.accuracy, finite(after.loss), None, report, after.metrics, validation=validation)
        if merged is None or not self.recipe.fuse.makes_students:
            return record
        before = after if merged.equals(weights) else self._score(name, merged)
        return replace(record, accuracy_before_fusion=before.accuracy, metrics_before_fusion=before.metrics)

    def clients(self, updates: Sequence[Update]) -> dict[int, Score]:
        """How good the own models of clients are that were asked."""
        test = replace(self.test, measure=None) if self.recipe.has_server_model else self.test
        return {u.client: test.score_table(u.test_outputs[PREDICTIONS]) for u in updates if u.test_outputs}

    def ensemble(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> Score | None:
        """How good that is what the students imitate: asked by the server, or as the clients answered themselves."""
        if not teachers or not self.is_due or not self.evaluation.ensemble:
            return None
        ensemble = self.recipe.fuse.ensemble(view, merged, teachers)
        if ensemble:
            return self.test.score_logits(ensemble)
        examined = [update for update in teachers if update.test_outputs]
        if self.recipe.protocol.carries != "predictions" or not examined:
            return None
        return self.test.score_table(combined_on_test(self.recipe, examined).log_probabilities)

    def ensemble_on_validation(
        self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]
    ) -> Values:
        """The same on validation examples, where the ensemble itself is the method's answer."""
        if not teachers or not self.is_due or not self.validation or not isinstance(self.recipe.fuse, EnsembleOnly):
            return {}
        ensemble = self.recipe.fuse.ensemble(view, merged, teachers)
        return _values(self.validation.score_logits(ensemble)) if ensemble else {}

    def _score(self, prototype: str, weights: Weights) -> Score:
        return self.test.score(self.bank.lend(prototype, weights))


def _values(score: Score) -> dict[str, float | None]:
    return {"accuracy": score.accuracy, "loss": finite(score.loss), **score.metrics}


def _mean_of(scores: Tensor, names: Sequence[str]) -> PrototypeRecord:
    if not len(scores):
        return PrototypeRecord()
    accuracy, loss, *metrics = scores.mean(dim=0).tolist()
    return PrototypeRecord(accuracy, finite(loss), metrics=dict(zip(names, map(finite, metrics), strict=True)))
