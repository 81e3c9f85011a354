"""What ``fedfuse bench`` does, as a function."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedfuse.core.errors import ConfigError, unknown
from fedfuse.core.origin import origin
from fedfuse.core.plain_json import dumps
from fedfuse.experiment.bench.cores import available_cores
from fedfuse.experiment.bench.ratios import Table, tables
from fedfuse.experiment.bench.turns import Kept, Plan, Progress, Turn, Unheard, take_turns
from fedfuse.experiment.bench.workloads import WORKLOADS
from fedfuse.experiment.bench.workloads.base import SizeName, Workload


@dataclass(frozen=True)
class Benchmark:
    """What was measured, and where. It names no user, host or folder."""

    facts: dict[str, Any]
    tables: tuple[Table, ...]
    turns: tuple[Turn, ...]

    def to_json(self) -> str:
        return dumps({**self.facts, "tables": list(map(asdict, self.tables)), "turns": list(map(asdict, self.turns))})


def bench(
    workloads: Sequence[str] = (),
    *,
    quick: bool = False,
    turns: int = 1,
    assignments: Sequence[str] = (),
    progress: Progress | None = None,
) -> Benchmark:
    """How fast fedfuse is on this machine, in ratios to loops that are written by hand.

    It takes a few minutes, ``quick`` less than one. ``assignments`` are for fedfuse's experiments; ``progress`` hears
    of every turn.
    """
    size: SizeName = "quick" if quick else "small"
    chosen = [workload for workload in pick(workloads) if any(size in one.sizes for one in workload.contenders)]
    for code in workloads:
        if code.upper() not in {workload.code for workload in chosen}:
            other = "leave out --quick" if quick else "make bench measures it in full"
            raise ConfigError(f"{code.upper()} has no {size} version; {other}")
    with tempfile.TemporaryDirectory(prefix="fedfuse-bench-") as folder:
        plan = Plan(chosen, size, turns, Path(folder), tuple(assignments))
        return carry_out(plan, Kept(Path(folder) / "turns.jsonl"), progress)


def carry_out(plan: Plan, kept: Kept, progress: Progress | None = None) -> Benchmark:
    """Take all turns and put them in relation."""
    taken = take_turns(plan, kept, progress or Unheard())
    return Benchmark(facts(plan), tuple(tables(plan.workloads, taken)), tuple(taken))


def pick(codes: Sequence[str]) -> list[Workload]:
    """By their codes, in the order of all; none: all of them."""
    wanted = {code.upper() for code in codes}
    for code in wanted - set(WORKLOADS):
        raise ConfigError(unknown("workload", code, WORKLOADS))
    return [workload for code, workload in WORKLOADS.items() if not wanted or code in wanted]


def facts(plan: Plan) -> dict[str, Any]:
    """When, with which code and on what kind of machine."""
    return {
        **origin().to_json(),
        "date": datetime.now(UTC).date().isoformat(),
        "cores": available_cores(),
        "size": plan.size,
        "turns_each": plan.turns,
        "assignments": list(plan.assignments),
    }
