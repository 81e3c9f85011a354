"""What every peer's program begins and ends with. It runs in that peer's environment."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from fedfuse.experiment.bench.clock import Moment, median_round
from fedfuse.experiment.bench.loop import network_of, normalised
from fedfuse.experiment.bench.turn import say
from fedfuse.experiment.bench.work import Work, read_examples
from fedfuse.experiment.bench.workloads.base import Outcome, Setup
from fedfuse.experiment.bench.workloads.examples import examples_of
from fedfuse.experiment.bench.workloads.rounds import W1, W3

WORKS = {"W1": W1, "W3": W3}


@dataclass(frozen=True)
class Task:
    """The work, with inputs that are normalised already, as in the hand-written loop."""

    work: Work
    threads: int
    clients: Sequence[tuple[Tensor, Tensor]]
    """Inputs and labels of each."""
    test: tuple[Tensor, Tensor]

    def network(self) -> nn.Module:
        return network_of(self.work)


def given(arguments: Sequence[str] | None = None) -> Task:
    """From the words after the program: the workload, threads, size and folder of the bench."""
    code, threads, size, folder, *_ = sys.argv[1:] if arguments is None else arguments
    torch.set_num_threads(int(threads))
    torch.manual_seed(0)
    work = WORKS[code][size]  # type: ignore[index]
    return task_of(work, int(threads), examples_of(work, Setup(size, Path(folder))))  # type: ignore[arg-type]


def task_of(work: Work, threads: int, path: Path) -> Task:
    examples = read_examples(path)
    inputs, labels = normalised(torch.from_numpy(examples.inputs)), torch.from_numpy(examples.labels)
    parts = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0)).split(work.examples)
    test = normalised(torch.from_numpy(examples.test_inputs)), torch.from_numpy(examples.test_labels)
    return Task(work, threads, [(inputs[part], labels[part]) for part in parts], test)


def tell(ends: Sequence[Moment]) -> None:
    """The moments at which rounds were over."""
    say(Outcome(median_round(ends)))
