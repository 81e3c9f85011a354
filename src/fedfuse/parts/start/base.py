"""What a start is: a prototype's first weights, made by the server."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from fedfuse.core.weights import Weights
from fedfuse.parts.base import MethodPart
from fedfuse.parts.context import ServerView


class Start(MethodPart):
    """Public inputs to weights, once, before round 1."""

    is_work: ClassVar[bool] = True
    """Whether it takes so long that a run saves its result, so as not to do it twice."""

    @abstractmethod
    def begin(self, view: ServerView, prototype: str) -> Weights:
        """The weights that round 1 broadcasts; ``view`` is that of round 0, without weights or memory."""

    def fresh(self, view: ServerView, prototype: str) -> Weights:
        """Random weights, the same ones whatever comes after them."""
        return view.bank.initial(prototype, view.key.child(prototype))
