"""What the clock says of a finished round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ClockRecord:
    """Simulated seconds of a round, and who was not heard because of them.

    ``total`` is since the first round began. The server ``waited`` for somebody to be there, then for the ``clients``,
    then for its own work (``server``). ``absent`` counts those who were not there when they were drawn; who is ``late``
    was not ready when the server went on, who has ``left`` went away before.
    """

    total: float
    seconds: float
    waited: float
    clients: float
    server: float
    absent: int
    late: tuple[int, ...]
    left: tuple[int, ...]

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> ClockRecord:
        return ClockRecord(**{**value, "late": tuple(value["late"]), "left": tuple(value["left"])})
