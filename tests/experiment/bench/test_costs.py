"""What a step, a client and a round cost, by counting: timings differ between machines, counts do not.

The bounds have room for about a third more than there was when they were set. Whoever exceeds one has added work to
every step, client or round of every run; whoever stays far below may lower it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import fedfuse
from fedfuse import Experiment
from fedfuse.experiment.bench import loop
from fedfuse.experiment.bench.with_fedfuse import experiment
from fedfuse.experiment.bench.work import Work, file_of, read_examples, write_examples

WORK = Work("mlp", (16,), clients=8, examples=20, sampled=4, batch=10, rate=0.1, rounds=3, test=20)
IMAGES = replace(WORK, network="small_convnet", shape=(1, 28, 28))
MORE_OPERATIONS_PER_STEP = 2
"""Than the hand-written loop: the loss is kept for the record, and a batch may change its layout."""
CALLS_PER_CLIENT = 400
CALLS_PER_ROUND = 530
"""Beside its clients: sampling, merging, evaluating, logging, saving."""
PACKAGE = str(Path(fedfuse.__file__).parent)

pytestmark = pytest.mark.usefixtures("without_pictures")


class Operations(TorchDispatchMode):
    """Counts what torch is asked to do."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        self.counts[str(function)] += 1
        return function(*arguments, **(named or {}))


@contextmanager
def calls() -> Iterator[Counter[str]]:
    """Counts calls of our own functions, by file; how many torch makes depends on its version and on who calls."""
    counts: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            counts[frame.f_code.co_filename] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield counts
    finally:
        sys.setprofile(before)


def examples(work: Work, folder: Path) -> Path:
    path = file_of(work, folder)
    if not path.exists():
        write_examples(work, path)
    return path


def run(work: Work, folder: Path) -> None:
    settings = {"engine": {"workers": 1}, "compute": {"channels_last": False}}
    Experiment(experiment(work, examples(work, folder), **settings)).run(folder / "run", overwrite=True)


def operations_of_fedfuse(work: Work, folder: Path) -> int:
    with Operations() as operations:
        run(work, folder)
    return operations.counts.total()


def operations_by_hand(work: Work, folder: Path) -> int:
    given = read_examples(examples(work, folder))
    threads = torch.get_num_threads()
    with Operations() as operations:
        loop.play(work, given)
    torch.set_num_threads(threads)
    return operations.counts.total()


@pytest.mark.parametrize("work", [WORK, IMAGES], ids=lambda work: work.network)
def test_a_step_asks_torch_for_what_a_hand_written_one_does(work: Work, tmp_path: Path) -> None:
    """The difference that a second epoch makes is steps and nothing else; proofs of the network are made before."""
    run(work, tmp_path)
    longer = replace(work, epochs=2)
    steps = work.rounds * work.sampled * work.examples // work.batch
    ours = operations_of_fedfuse(longer, tmp_path) - operations_of_fedfuse(work, tmp_path)
    by_hand = operations_by_hand(longer, tmp_path) - operations_by_hand(work, tmp_path)
    assert ours / steps <= by_hand / steps + MORE_OPERATIONS_PER_STEP


def calls_of(work: Work, folder: Path) -> int:
    with calls() as counts:
        run(work, folder)
    return counts.total()


def test_a_client_takes_few_calls(tmp_path: Path) -> None:
    few, many = replace(WORK, sampled=2), replace(WORK, sampled=6)
    run(few, tmp_path)  # what is done once per process
    clients = (many.sampled - few.sampled) * WORK.rounds
    assert (calls_of(many, tmp_path) - calls_of(few, tmp_path)) / clients <= CALLS_PER_CLIENT


def test_a_round_takes_few_calls_beside_its_clients(tmp_path: Path) -> None:
    short, long = replace(WORK, sampled=1, rounds=2), replace(WORK, sampled=1, rounds=7)
    run(short, tmp_path)
    more = (calls_of(long, tmp_path) - calls_of(short, tmp_path)) / (long.rounds - short.rounds)
    assert more <= CALLS_PER_ROUND + CALLS_PER_CLIENT
