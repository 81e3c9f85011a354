"""What an experiment will cost, said before it is run: seconds, memory, traffic and disk."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fedfuse.engines import LocalEngineSettings
from fedfuse.experiment.assembly import build
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.estimate.duration import Duration, duration
from fedfuse.experiment.estimate.memory import forget_peak, held_updates, peak
from fedfuse.experiment.estimate.miniature import Clock
from fedfuse.experiment.estimate.traffic import Traffic, traffic
from fedfuse.experiment.sheets import size
from fedfuse.federation.checkpoint import KEPT
from fedfuse.federation.events import EventLog
from fedfuse.federation.kept_clients import kept_bytes

BYTES = 4
ENDS_EARLY = "at most"
LONG_ENOUGH = 60.0
"""Seconds after which the rest is taken for like what was seen."""


@dataclass(frozen=True)
class Estimate:
    """Of one run, or of several one after another. Seconds and memory are those of this machine as it is now."""

    seconds: float
    memory: int
    """Bytes that one process holds at its highest."""
    bytes_up: int
    bytes_down: int
    is_exact: bool
    """Whether the traffic is known to the byte."""
    disk: int
    processes: int = 1
    may_end_early: bool = False
    runs: int = 1

    def facts(self) -> dict[str, str]:
        """For a terminal."""
        early = f"{ENDS_EARLY} " if self.may_end_early else ""
        about = "" if self.is_exact and not self.may_end_early else "about "
        shared = f" each, {self.processes} processes" if self.processes > 1 else ""
        return {
            **({"runs": str(self.runs)} if self.runs > 1 else {}),
            "time": f"{early}about {in_words(self.seconds)}, if the machine does nothing else",
            "memory": f"about {size(self.memory)}{shared}",
            "traffic": f"{early}{about}{size(self.bytes_up)} up, {size(self.bytes_down)} down",
            "disk": f"about {size(self.disk)}",
        }

    def __str__(self) -> str:
        return "\n".join(f"{name:8} {value}" for name, value in self.facts().items())


def estimate_of(config: ExperimentConfig) -> Estimate:
    """One run, by a few rounds in miniature. Nothing is written."""
    forget_peak()
    began = Clock()
    here = config.model_copy(update={"engine": LocalEngineSettings(workers=0)})
    built = build(here, EventLog())
    preparing = began.seconds
    built = replace(built, config=built.config.model_copy(update={"engine": config.engine}))
    weighed, timed = traffic(built), duration(built, preparing)
    weights = sum(built.federation.bank.layout(name).size for name in built.federation.bank.prototypes) * BYTES
    kept = kept_bytes(built.federation) if config.federation.keep_clients else 0
    return _together(config, weighed, timed, peak() + held_updates(built), (KEPT + 1) * weights + kept)


def _together(config: ExperimentConfig, weighed: Traffic, timed: Duration, memory: int, disk: int) -> Estimate:
    evaluation = config.evaluation
    return Estimate(
        seconds=timed.seconds,
        memory=memory,
        bytes_up=weighed.up,
        bytes_down=weighed.down,
        is_exact=weighed.is_exact,
        disk=disk,
        processes=timed.processes,
        may_end_early=evaluation.patience is not None or evaluation.stop_at_target,
    )


def estimate_all(configs: Sequence[ExperimentConfig], jobs: int = 1, runs: int | None = None) -> Estimate:
    """Several runs; those that differ in nothing but the seed are taken for equally long.

    If that takes long, not all are looked at, and the others are taken for the mean of those that were. So are all
    ``runs``, if ``configs`` are only some of them.
    """
    groups: dict[str, list[ExperimentConfig]] = {}
    for config in configs:
        groups.setdefault(str({**config.identity(), "seed": 0}), []).append(config)
    found, began = list[tuple[Estimate, int]](), time.monotonic()
    for group in groups.values():
        if not found or time.monotonic() - began < LONG_ENOUGH:
            found.append((estimate_of(group[0]), len(group)))
    looked_at = sum(number for _, number in found)
    number = runs or len(configs)
    scale, side_by_side = number / looked_at, min(jobs, number)
    return Estimate(
        seconds=scale * sum(one.seconds * times for one, times in found) / side_by_side,
        memory=max(one.memory for one, _ in found),
        bytes_up=round(scale * sum(one.bytes_up * times for one, times in found)),
        bytes_down=round(scale * sum(one.bytes_down * times for one, times in found)),
        is_exact=number == looked_at == len(found) and all(one.is_exact for one, _ in found),
        disk=round(scale * sum(one.disk * times for one, times in found)),
        processes=side_by_side if jobs > 1 else found[0][0].processes,
        may_end_early=any(one.may_end_early for one, _ in found),
        runs=number,
    )


def in_words(seconds: float) -> str:
    """A rough time."""
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.2g} {unit}" if seconds < 10 * length else f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"
