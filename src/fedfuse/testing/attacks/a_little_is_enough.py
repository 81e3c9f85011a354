"""A little is enough (Baruch, Baruch and Goldberg, NeurIPS 2019): just inside the spread of the honest clients.

    x_k = mean - z std        coordinate by coordinate, of the honest clients' weights
    z = max{ z : Phi(z) < (n - f - s) / (n - f) },  s = floor(n / 2 + 1) - f

n clients, f of them hostile: s honest ones are enough for a majority that lies farther out than the attackers.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import ClassVar, Literal

from pydantic import Field

from fedfuse.core.weights import Weights
from fedfuse.federation.attack import Attack, Situation
from fedfuse.testing.attacks.moves import moved_by, moves_of


class ALittleIsEnough(Attack):
    """All who attack send the same weights, a little beside the honest mean."""

    kind: Literal["a_little_is_enough"] = "a_little_is_enough"
    bends: ClassVar[str] = "weights"
    knows_others: ClassVar[bool] = True
    z: float | None = Field(None, gt=0, description="standard deviations; unless said, as many as the paper's formula")

    def weights(self, honest: Weights, situation: Situation) -> Weights:
        moves = moves_of(situation.others, situation.sent)
        z = self.z or deviations(situation.clients, situation.hostile)
        return moved_by(honest, situation.sent, moves.mean(dim=0) - z * moves.std(dim=0, unbiased=False))


def deviations(clients: int, hostile: int) -> float:
    """The paper's z, and at least 0.3: where attackers are few, its formula gives none that is positive."""
    honest = max(1, clients - hostile)
    supporters = max(1, clients // 2 + 1 - hostile)
    share = min(max((honest - supporters) / honest, 0.5), 1 - 1 / (2 * honest))
    return max(NormalDist().inv_cdf(share), 0.3)
