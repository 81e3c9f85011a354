"""Mimic (Karimireddy, He and Jaggi, ICLR 2022): all who attack repeat one honest client, which then counts too much.

It is the one whose move is farthest from the honest mean. No single update is wrong, and who differs is drowned.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from fedfuse.core.weights import Weights
from fedfuse.federation.attack import Attack, Situation
from fedfuse.testing.attacks.moves import moved_by, moves_of


class Mimic(Attack):
    """Send what one honest client would send."""

    kind: Literal["mimic"] = "mimic"
    bends: ClassVar[str] = "weights"
    knows_others: ClassVar[bool] = True

    def weights(self, honest: Weights, situation: Situation) -> Weights:
        moves = moves_of(situation.others, situation.sent)
        repeated = int((moves - moves.mean(dim=0)).norm(dim=1).argmax())
        return moved_by(honest, situation.sent, moves[repeated])
