"""Plain local SGD, the local objective of FedAvg (McMahan et al., 2017): minimise F_k(w)."""

from __future__ import annotations

from typing import Literal

from fedfuse.parts.local.objective import Hooks, Objective, Visit


class Plain(Objective):
    """Cross-entropy on the client's own examples."""

    kind: Literal["plain"] = "plain"

    def begin(self, visit: Visit) -> Hooks:
        return Hooks()
