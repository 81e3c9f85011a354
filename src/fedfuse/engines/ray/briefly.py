"""What Ray prints into a run's own output about machines that are lost: a line, not the last pages of their logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

LONGEST = 200
"""Characters."""


def speak_briefly(ray: Any) -> None:
    """From now on. Ray has no setting for it, and this is no harm where it prints in another way."""
    worker: Any = getattr(getattr(ray, "_private", None), "worker", None)
    told = getattr(worker, "print_to_stdstream", None)
    if told is not None and not hasattr(told, "is_brief"):
        worker.print_to_stdstream = _brief(told)


def _brief(told: Callable[..., None]) -> Callable[..., None]:
    def brief(message: Mapping[str, Any], *more: Any, **options: Any) -> None:
        lines = [str(line).strip().split("\n")[0][:LONGEST] for line in message["lines"]]
        told({**message, "lines": lines, "is_err": True}, *more, **options)

    brief.is_brief = True  # type: ignore[attr-defined]
    return brief
