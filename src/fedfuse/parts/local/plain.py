"""Plain local SGD, the local objective of FedAvg (McMahan et al., 2017): minimise F_k(w)."""

from __future__ import annotations

from typing import ClassVar, Literal

from fedfuse.parts.context import ClientContext
from fedfuse.parts.local.objective import Hooks, Objective


class Plain(Objective):
    """Cross-entropy on the client's own examples."""

    kind: Literal["plain"] = "plain"
    stacks: ClassVar[bool] = True
    separates_examples: ClassVar[bool] = True

    def begin(self, client: ClientContext) -> Hooks:
        return Hooks()
