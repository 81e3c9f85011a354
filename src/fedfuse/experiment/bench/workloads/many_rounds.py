"""W7: a tiny problem for 1,000 rounds: what grows with the rounds that are over?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedfuse.experiment.bench.clock import Moment, median_round
from fedfuse.experiment.bench.work import Examples, Work
from fedfuse.experiment.bench.workloads.base import PLAIN_LOOP, Contender, Outcome, Row, Setup, SizeName, Workload

WORK = Work("mlp", (64,), clients=5, examples=258, sampled=5, batch=64, rate=0.1, rounds=60, test=360)
"""Digits, of which fedfuse holds 143 back for validation."""
EARLY = slice(9, 60)
"""Rounds 10 to 60: their ends, from that of round 10 on."""
LATE = 100
ROUNDS: Mapping[SizeName, int] = {"full": 1000, "small": 300, "quick": 160, "tiny": 12}


def by_hand(_setup: Setup) -> Outcome:
    from fedfuse.experiment.bench.loop import play

    return Outcome(_early(play(WORK, _digits())))


def by_fedfuse(setup: Setup) -> Outcome:
    from fedfuse.experiment.bench.loop import architecture
    from fedfuse.experiment.bench.with_fedfuse import watch

    rounds = ROUNDS[setup.size]
    experiment = {
        "data": {"name": "digits"},
        "partition": {"kind": "iid", "clients": WORK.clients},
        "models": {"mlp": architecture(WORK)},
        "federation": {"rounds": rounds},
        "method": "fedavg",
    }
    watched = watch(experiment, setup.assignments)
    late = median_round(watched.rounds[-LATE:])
    return Outcome(
        {**_early(watched.rounds), **{f"late_{name}": value for name, value in late.items()}}, watched.chosen
    )


def _early(ends: Sequence[Moment]) -> dict[str, float]:
    return median_round(ends[EARLY] if len(ends) > EARLY.start + 1 else ends)


def _digits() -> Examples:
    from sklearn.datasets import load_digits

    inputs, labels = load_digits(return_X_y=True)
    inputs, labels = inputs.astype("float32") / 16, labels.astype("int64")
    train = WORK.train
    return Examples(inputs[:train], labels[:train], inputs[-WORK.test :], labels[-WORK.test :])


MANY_ROUNDS = Workload(
    "W7",
    "Digits, MLP 64-32-10, 5 clients, 1,000 rounds",
    "what a round costs beside its arithmetic, and whether late rounds cost more than early ones",
    contenders=(
        Contender(PLAIN_LOOP, by_hand, sizes=("full", "small", "quick", "tiny")),
        Contender("fedfuse", by_fedfuse, sizes=("full", "small", "quick", "tiny")),
    ),
    rows=(
        Row("fedfuse, rounds 10 to 60", "fedfuse", "cpu", PLAIN_LOOP),
        Row("fedfuse, last 100 rounds", "fedfuse", "late_cpu", PLAIN_LOOP, "cpu"),
        Row("fedfuse, last 100 rounds against rounds 10 to 60", "fedfuse", "late_cpu", "fedfuse", "cpu"),
        Row("the same in bytes written", "fedfuse", "late_written", "fedfuse", "written"),
        Row("bytes written in a round, rounds 10 to 60", "fedfuse", "written", unit="bytes"),
    ),
    seconds=300,
)
