"""W4: the fusion alone, against teachers that are asked at every step.

A step by hand always costs the same, so that some are timed and multiplied. fedfuse asks its teachers once where views
are fixed, so that a whole fusion is timed, in a round whose clients have next to nothing to train. What further steps
would take is told by the last ones, when every teacher has answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fedfuse.experiment.bench.work import PLAIN, SAME_TRICKS, Tricks, Work, read_examples
from fedfuse.experiment.bench.workloads.base import PLAIN_LOOP, Contender, Outcome, Row, Setup, SizeName, Workload
from fedfuse.experiment.bench.workloads.examples import examples_of

AUGMENTED_LOOP = "plain loop, augmented views"
FURTHER = 1000
"""Steps that are told from fewer."""


@dataclass(frozen=True)
class Fusion:
    """``work.clients`` teachers, ``work.public`` inputs in batches of ``work.batch``."""

    work: Work
    by_hand: int
    """Steps of the hand-written loop that are timed."""
    fixed: int
    """Steps of fedfuse's fusion with fixed views."""
    augmented: int
    """Steps of fedfuse's fusion with augmented views: nothing is asked once, so that few are enough."""


_FULL = Fusion(
    Work(
        "resnet8", (3, 32, 32), clients=8, examples=8, sampled=8, batch=64, rate=0.1, rounds=1, test=64, public=10_000
    ),
    by_hand=30,
    fixed=300,
    augmented=60,
)
FUSIONS: Mapping[SizeName, Fusion] = {
    "full": _FULL,
    "small": Fusion(replace(_FULL.work, clients=4, sampled=4, public=640), by_hand=10, fixed=40, augmented=10),
    "quick": Fusion(replace(_FULL.work, clients=4, sampled=4, public=320), by_hand=5, fixed=20, augmented=5),
    "tiny": Fusion(replace(_FULL.work, clients=2, sampled=2, batch=8, public=32), by_hand=2, fixed=8, augmented=2),
}


def by_hand(setup: Setup, tricks: Tricks = PLAIN, augment: bool = False) -> Outcome:
    from fedfuse.experiment.bench.fusion_loop import distil

    fusion = FUSIONS[setup.size]
    work = replace(fusion.work, augment=augment)
    taken = distil(work, read_examples(examples_of(work, setup)), fusion.by_hand, tricks)
    per_step = {"cpu": taken.cpu / fusion.by_hand, "wall": taken.wall / fusion.by_hand}
    return Outcome({**per_step, **_for(per_step, "fixed", fusion.fixed), **_for(per_step, "further", FURTHER)})


def by_fedfuse(setup: Setup, augment: bool = False, joining: bool = False) -> Outcome:
    """``joining``: in a second round, when workers have joined."""
    from fedfuse.experiment.bench.with_fedfuse import experiment, watch

    fusion = FUSIONS[setup.size]
    work, steps = fusion.work, fusion.augmented if augment else fusion.fixed
    method = _method(work, steps, "augmented" if augment else "fixed")
    sections = experiment(replace(work, rounds=1 + joining), examples_of(work, setup), method=method)
    if augment:
        sections["data"]["augment"] = ["crop", "flip"]
    watched = watch(sections, setup.assignments)
    assert watched.first_client is not None, "a round has clients"
    whole = watched.rounds[-1] - (watched.rounds[0] if joining else watched.first_client)
    if augment:
        return Outcome({"cpu": whole.cpu / steps, "wall": whole.wall / steps}, watched.chosen)
    last = watched.ticks[steps] - watched.ticks[steps - steps // 4]
    further = (FURTHER - steps) / (steps // 4)
    told = {"further_cpu": whole.cpu + further * last.cpu, "further_wall": whole.wall + further * last.wall}
    return Outcome({"fixed_cpu": whole.cpu, "fixed_wall": whole.wall, **told}, watched.chosen)


def _method(work: Work, steps: int, views: str) -> dict[str, Any]:
    """FedDF without a look at the validation split; it tells four times how far it is."""
    distiller = {"steps": steps, "batch_size": work.batch, "keep": "last", "evaluate_every": max(1, steps // 4)}
    return {"name": "feddf", "fuse": {"views": views, "distiller": distiller}}


def _for(per_step: Mapping[str, float], name: str, steps: int) -> dict[str, float]:
    return {f"{name}_{clock}": steps * seconds for clock, seconds in per_step.items()}


def _rows(contender: str, clock: str) -> tuple[Row, ...]:
    return (
        Row(f"{contender}, fixed views, whole fusion", contender, f"fixed_{clock}", PLAIN_LOOP),
        Row(f"{contender}, fixed views, {FURTHER:,} steps", contender, f"further_{clock}", PLAIN_LOOP),
        Row(f"{contender}, augmented views", f"{contender}, augmented", clock, AUGMENTED_LOOP),
    )


FUSION = Workload(
    "W4",
    "Fusion of 8 ResNet-8 teachers on 10,000 inputs, batches of 64",
    "teachers answer once where views are fixed, so that a longer fusion gains more",
    contenders=(
        Contender(PLAIN_LOOP, by_hand),
        Contender(AUGMENTED_LOOP, partial(by_hand, augment=True)),
        Contender("loop with the same tricks", partial(by_hand, tricks=SAME_TRICKS), sizes=("full",)),
        Contender("fedfuse", by_fedfuse),
        Contender("fedfuse, augmented", partial(by_fedfuse, augment=True)),
        Contender("fedfuse, all cores", partial(by_fedfuse, joining=True), all_cores=True, sizes=("full",)),
        Contender(
            "fedfuse, all cores, augmented",
            partial(by_fedfuse, augment=True, joining=True),
            all_cores=True,
            sizes=("full",),
        ),
    ),
    rows=(
        Row("loop with the same tricks", "loop with the same tricks", "cpu", PLAIN_LOOP),
        *_rows("fedfuse", "cpu"),
        *_rows("fedfuse, all cores", "wall"),
    ),
    seconds=600,
)
