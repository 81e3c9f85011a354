"""Drop-worst of FedDF (Lin et al., 2020, section 4.2): leave out clients that predict at random.

Before merging and teaching, clients whose server-validation accuracy is below 1.2 x chance are dropped. The released
code has a second rule, off unless ``outlier_deviations`` is given: if nobody is that bad, teachers whose accuracy is
below mean - 1.5 std of the others are dropped from teaching only (mean and std without the best one).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Update
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView
from fedfuse.parts.screen.base import Screen, Screened


class DropWorst(Screen):
    """Leave out clients that are no better than guessing on the server's validation split."""

    kind: Literal["drop_worst"] = "drop_worst"
    chance_factor: float = Field(1.2, gt=0, description="drop below this multiple of 1/classes")
    outlier_deviations: float | None = Field(
        None, gt=0, description="also drop teachers so many deviations below the mean; FedDF's code: 1.5"
    )

    def check(self, context: CheckContext) -> None:
        if not context.has_validation:
            raise ConfigError("method.screen drop_worst judges clients on validation examples; set data.validation")

    def screen(self, view: ServerView, updates: Screened) -> Screened:
        accuracy = {u.client: _accuracy(view, u) for u in updates.counted}
        threshold = self.chance_factor / view.bank.classes
        at_chance = {client for client, value in accuracy.items() if value < threshold}
        if len(at_chance) == len(accuracy):
            return updates  # with everybody at chance the rule has nothing to choose by
        reasons = {c: f"validation accuracy {accuracy[c]:.4f} is below {threshold:.4f}" for c in sorted(at_chance)}
        counted = [u for u in updates.counted if u.client not in at_chance]
        if not at_chance:
            reasons |= self._outliers(accuracy)
        teachers = [u for u in updates.teachers if u.client not in reasons]
        return Screened(counted, teachers, {**updates.reasons, **reasons})

    def _outliers(self, accuracy: Mapping[int, float]) -> dict[int, str]:
        """Who is merged but does not teach, and why."""
        others = sorted(accuracy.values())[:-1]
        if len(others) < 2 or self.outlier_deviations is None:
            return {}
        floor = statistics.mean(others) - self.outlier_deviations * statistics.pstdev(others)
        rule = f"is below {floor:.4f}, {self.outlier_deviations:g} deviations under the others; merged, but no teacher"
        return {c: f"validation accuracy {own:.4f} {rule}" for c, own in sorted(accuracy.items()) if own < floor}


def _accuracy(view: ServerView, update: Update) -> float:
    assert view.validation is not None, "checked before round 1"
    return view.validation.score(view.bank.lend(update.prototype, update.weights)).accuracy
