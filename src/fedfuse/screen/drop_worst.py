"""Drop-worst of FedDF (Lin et al., 2020, section 4.2): leave out clients that predict at random.

Before merging and teaching, clients whose server-validation accuracy is below 1.2 x chance are dropped. As in the
released code, if nobody is that bad, teachers whose accuracy is below mean - 1.5 std of the others are dropped from
teaching only (mean and std without the best one).
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Update
from fedfuse.runtime.part import Setting
from fedfuse.runtime.view import ServerView
from fedfuse.screen.base import Screen, Screened


class DropWorst(Screen):
    """Leave out clients that are no better than guessing on the server's validation split."""

    kind: Literal["drop_worst"] = "drop_worst"
    chance_factor: float = Field(1.2, gt=0, description="drop below this multiple of 1/classes")
    outlier_deviations: float | None = Field(
        1.5, gt=0, description="also drop teachers this many deviations below the mean; null switches it off"
    )

    def check(self, setting: Setting) -> None:
        if not setting.has_validation:
            raise ConfigError("method.screen drop_worst judges clients on validation examples; set data.validation")

    def screen(self, view: ServerView, updates: Screened) -> Screened:
        accuracy = {u.client: _accuracy(view, u) for u in updates.counted}
        threshold = self.chance_factor / view.bank.classes
        at_chance = {client for client, value in accuracy.items() if value < threshold}
        if len(at_chance) == len(accuracy):
            return updates  # with everybody at chance the rule has nothing to choose by
        reasons = {c: f"validation accuracy {accuracy[c]:.4f} is below {threshold:.4f}" for c in sorted(at_chance)}
        counted = [u for u in updates.counted if u.client not in at_chance]
        teachers = [u for u in updates.teachers if u.client not in at_chance]
        if not at_chance and self.outlier_deviations is not None:
            teachers = self._without_outliers(teachers, accuracy)
        return Screened(counted, teachers, {**updates.reasons, **reasons})

    def _without_outliers(self, teachers: Sequence[Update], accuracy: dict[int, float]) -> list[Update]:
        others = sorted(accuracy.values())[:-1]
        if len(others) < 2 or self.outlier_deviations is None:
            return list(teachers)
        floor = statistics.mean(others) - self.outlier_deviations * statistics.pstdev(others)
        return [u for u in teachers if accuracy[u.client] >= floor]


def _accuracy(view: ServerView, update: Update) -> float:
    assert view.validation is not None, "checked before round 1"
    return view.validation.score(view.bank.lend(update.prototype, update.weights)).accuracy
