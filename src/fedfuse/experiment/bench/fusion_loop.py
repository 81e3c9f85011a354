"""Ensemble distillation by hand, as the papers' code does it: all teachers are asked at every step."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedfuse.experiment.bench.clock import Moment
from fedfuse.experiment.bench.loop import augmented, network_of, normalised, prepare
from fedfuse.experiment.bench.work import PLAIN, Examples, Tricks, Work

WARM_UP = 3


def distil(work: Work, examples: Examples, steps: int, tricks: Tricks = PLAIN) -> Moment:
    """What so many steps take; a few before them warm up."""
    prepare(tricks)
    teachers = [_laid_out(network_of(work), tricks).eval() for _ in range(work.clients)]
    student = _laid_out(network_of(work), tricks).train()
    optimizer = torch.optim.Adam(student.parameters(), fused=True if tricks.fused else None)
    inputs = torch.from_numpy(examples.inputs)
    began = Moment.now()
    for step in range(WARM_UP + steps):
        if step == WARM_UP:
            began = Moment.now()
        raw = inputs[torch.randint(len(inputs), (work.batch,))]
        batch = normalised(augmented(raw) if work.augment else raw)
        batch = batch.to(memory_format=torch.channels_last) if tricks.channels_last else batch
        optimizer.zero_grad()
        F.kl_div(student(batch).log_softmax(1), _answer(teachers, batch), reduction="batchmean").backward()
        optimizer.step()
    return Moment.now() - began


@torch.no_grad()
def _answer(teachers: list[nn.Module], batch: Tensor) -> Tensor:
    return torch.stack([teacher(batch) for teacher in teachers]).mean(0).softmax(1)


def _laid_out(network: nn.Module, tricks: Tricks) -> nn.Module:
    return network.to(memory_format=torch.channels_last) if tricks.channels_last else network  # type: ignore[call-overload]
