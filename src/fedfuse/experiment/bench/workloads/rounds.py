"""W1, W2, W3: rounds of FedAvg, against a hand-written loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from fedfuse.experiment.bench.clock import median_round
from fedfuse.experiment.bench.cores import available_cores
from fedfuse.experiment.bench.work import PLAIN, SAME_TRICKS, Tricks, Work, read_examples
from fedfuse.experiment.bench.workloads.base import PLAIN_LOOP, Contender, Outcome, Row, Setup, SizeName, Workload
from fedfuse.experiment.bench.workloads.examples import examples_of

Works = Mapping[SizeName, Work]

_W1 = Work(
    "convnet", (3, 32, 32), clients=10, examples=500, sampled=10, batch=50, rate=0.01, momentum=0.9, rounds=3, joining=2
)
_W2 = Work(
    "resnet8",
    (3, 32, 32),
    clients=20,
    examples=500,
    sampled=8,
    batch=50,
    rate=0.1,
    epochs=2,
    augment=True,
    rounds=2,
    joining=1,
)
_W3 = Work(
    "small_convnet", (1, 28, 28), clients=1000, examples=50, sampled=50, batch=10, rate=0.05, rounds=7, joining=12
)


def _tiny(work: Work) -> Work:
    """For tests."""
    return replace(work, clients=2, examples=10, sampled=2, test=10, rounds=2, joining=0)


W1: Works = {
    "full": _W1,
    "small": replace(_W1, clients=4, sampled=4, rounds=3),
    "quick": replace(_W1, clients=2, examples=200, sampled=2, rounds=4),
    "tiny": _tiny(_W1),
}
W2: Works = {
    "full": _W2,
    "small": replace(_W2, clients=4, examples=200, sampled=4, rounds=2, joining=2),
    "quick": replace(_W2, clients=2, examples=100, sampled=2, rounds=3),
    "tiny": _tiny(_W2),
}
W3: Works = {
    "full": _W3,
    "small": replace(_W3, rounds=4, joining=8),
    "quick": replace(_W3, clients=200, sampled=20, rounds=5),
    "tiny": _tiny(_W3),
}


def by_hand(works: Works, setup: Setup, tricks: Tricks = PLAIN) -> Outcome:
    from fedfuse.experiment.bench.loop import play

    work = works[setup.size]
    return Outcome(median_round(play(work, read_examples(examples_of(work, setup)), tricks)))


def with_all_threads(works: Works, setup: Setup) -> Outcome:
    return by_hand(works, setup, Tricks(threads=available_cores()))


def by_fedfuse(works: Works, setup: Setup, off: bool = False, joining: bool = False) -> Outcome:
    from fedfuse.experiment.bench.with_fedfuse import EVERYTHING_OFF, experiment, watch

    work = works[setup.size]
    keys = (*(EVERYTHING_OFF if off else ()), *setup.assignments)
    more = work.joining if joining else 0
    watched = watch(experiment(replace(work, rounds=work.rounds + more), examples_of(work, setup)), keys)
    return Outcome(median_round(watched.rounds[more:]), watched.chosen)


def against_the_loop(contenders: Sequence[Contender]) -> tuple[Row, ...]:
    """Processor time on one core, wall time on all."""
    return tuple(
        Row(contender.name, contender.name, "wall" if contender.all_cores else "cpu", PLAIN_LOOP)
        for contender in contenders
        if contender.name != PLAIN_LOOP
    )


def _workload(code: str, title: str, meaning: str, works: Works, sizes: tuple[SizeName, ...]) -> Workload:
    """``sizes`` in which the loop and fedfuse meet; the other contenders are for the page of results."""
    contenders = (
        Contender(PLAIN_LOOP, partial(by_hand, works), sizes=sizes),
        Contender("loop with the same tricks", partial(by_hand, works, tricks=SAME_TRICKS), sizes=("full",)),
        Contender("fedfuse", partial(by_fedfuse, works), sizes=sizes),
        Contender("fedfuse, everything off", partial(by_fedfuse, works, off=True), sizes=("full",)),
        Contender("loop, all cores", partial(with_all_threads, works), True, sizes=("full",)),
        Contender(
            "fedfuse, all cores", partial(by_fedfuse, works, joining=True), True, sizes=("full", "small", "tiny")
        ),
    )
    return Workload(code, title, meaning, contenders, against_the_loop(contenders))


CONVNET = _workload(
    "W1",
    "FedAvg, ConvNet, 10 clients with 500 images 3x32x32",
    "large batches and layers: arithmetic decides, and how it is laid out in memory",
    W1,
    ("full", "small", "quick", "tiny"),
)
RESNET = _workload(
    "W2",
    "FedAvg, ResNet-8 with BatchNorm, crop and flip, 8 of 20 clients",
    "the usual network of the papers: many layers, augmented batches",
    W2,
    ("full", "small", "tiny"),
)
SMALL_CLIENTS = _workload(
    "W3",
    "FedAvg, 50 of 1,000 clients with 50 images 1x28x28",
    "many small clients: what is spent per client and per step counts as much as arithmetic",
    W3,
    ("full", "small", "quick", "tiny"),
)
