"""What differs between two recorded runs of one case: final weights, log, bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

CLOCKS = {"time", "seconds", "origin", "config_sha256", "log", "notes", "cautions"}
"""What two runs of one version differ in as well, what names the version itself, and what is said in words."""

REFUSALS = ("ConfigError", "UnknownKeyError")
"""How a version says that it has no such part or key."""


@dataclass(frozen=True)
class Difference:
    """One case in two versions; nothing in it means the same bits."""

    case: str
    weights: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    bytes: tuple[str, ...] = ()
    ending: str = ""
    """How the case ended, if not with a run in both versions."""
    is_new: bool = False
    """Whether the older version did not know what the case asks for."""

    @property
    def is_one(self) -> bool:
        return bool(self.weights or self.log or self.bytes or self.ending)

    def lines(self) -> Iterator[str]:
        """In words, one line for each kind of difference."""
        if self.ending:
            yield self.ending
        for what in ("weights", "bytes", "log"):
            found = getattr(self, what)
            if found:
                yield f"{what}: {'; '.join(found)}"


def compare(case: str, before: Path, now: Path) -> Difference:
    """Two folders of ``record.py``, the older version's first."""
    errors = [_read(folder / "error") for folder in (before, now)]
    if errors[0].startswith(REFUSALS) and not errors[1]:
        return Difference(case, is_new=True)
    if any(errors):
        return Difference(case, ending=_ending(*errors))
    logs = [_log(folder / "run" / "events.jsonl") for folder in (before, now)]
    changes = _changes(*logs)
    return Difference(
        case,
        weights=tuple(_weights(before / "run" / "final", now / "run" / "final")),
        bytes=tuple(text for key, text in changes.items() if "bytes" in key),
        log=tuple(text for key, text in changes.items() if "bytes" not in key),
    )


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _ending(before: str, now: str) -> str:
    if before == now:
        return f"runs in neither version: {now}"
    if not before:
        return f"ran before, now {now}"
    return f"before {before}; now {now or 'it runs'}"


def _weights(before: Path, now: Path) -> Iterator[str]:
    names = {path.relative_to(folder) for folder in (before, now) for path in folder.rglob("*.safetensors")}
    for name in sorted(names):
        if not (before / name).exists() or not (now / name).exists():
            yield f"{name.with_suffix('')} only {'now' if (now / name).exists() else 'before'}"
            continue
        old, new = load_file(before / name), load_file(now / name)
        if {key: tensor.shape for key, tensor in old.items()} != {key: tensor.shape for key, tensor in new.items()}:
            yield f"{name.with_suffix('')} has other shapes"
        elif not all(_same(old[key], new[key]) for key in old):
            gap = max(float((new[key].double() - old[key].double()).abs().max()) for key in old if old[key].numel())
            yield f"{name.with_suffix('')} by up to {gap:.1e}"


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Bit for bit, NaN and the sign of zero included."""
    return one.dtype == other.dtype and one.contiguous().numpy().tobytes() == other.contiguous().numpy().tobytes()


@dataclass
class _Change:
    first: str
    places: int = 0
    values: list[Any] = field(default_factory=list)


def _changes(before: dict[str, Any], now: dict[str, Any]) -> dict[str, str]:
    """By key, the first of the places at which two flat logs differ and how many more there are."""
    found: dict[str, _Change] = {}
    for place in [*before, *(place for place in now if place not in before)]:
        old, new = before.get(place, "nothing"), now.get(place, "nothing")
        if old != new:
            key = re.sub(r"\b\d+\.", "", place)
            found.setdefault(key, _Change(f"{place} {_short(old)} -> {_short(new)}")).places += 1
    return {
        key: change.first + (f" and {change.places - 1} more" if change.places > 1 else "")
        for key, change in found.items()
    }


def _log(path: Path) -> dict[str, Any]:
    """The events as one flat mapping from addresses such as ``3.round_finished.prototypes.mlp.loss`` to values."""
    flat: dict[str, Any] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        event = json.loads(line)
        flat |= dict(_leaves(event, f"{number}.{event['event']}"))
    return flat


def _leaves(node: Any, address: str) -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict) and node:
        for key, child in node.items():
            if key not in CLOCKS:
                yield from _leaves(child, f"{address}.{key}")
    else:
        yield address, node if node == node else "NaN"


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 40 else text[:37] + "..."
