"""Inputs that are made from trained networks alone.

J. Zhang et al., DENSE: Data-Free One-Shot Federated Learning, NeurIPS 2022. R. Dai et al., Enhancing One-Shot Federated
Learning Through Data and Ensemble Co-Boosting, ICLR 2024.

Batch after batch: a new generator and its random numbers z are trained for T_G steps to make inputs of wanted classes
y, the inputs of the lowest loss (``losses.py``) are added to the others, and students learn from the teachers on all
that there are (the rehearsal), so that the next batch can show what they do not know. With ``weight_step`` mu, teachers
are weighed in between as in Co-Boosting,

    w_k <- clip( w_k - mu 0.99^b sign( d/dw_k CE( D_w(x), y ) ) ),   0 <= w_k <= m

(w = 1 is an equal weight of m teachers, b counts batches). Two things differ from the papers: students who rehearse are
copies, and whoever is taught in the end sees all inputs from its first step on; and an input is moved once, when it is
made (``perturbation``), and not anew at every step.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError
from fedfuse.core.imports import first_line
from fedfuse.core.randomness import Key
from fedfuse.core.slices import slices
from fedfuse.data import Normalisation
from fedfuse.models.modes import evaluation_mode
from fedfuse.parts.sources.synthesised.asking import Lend, asked, lend_and_ask
from fedfuse.parts.sources.synthesised.losses import divergence_loss, label_loss, moved
from fedfuse.parts.sources.synthesised.networks import build_generator
from fedfuse.parts.sources.synthesised.settings import SynthesisSettings
from fedfuse.runtime.batches import epoch_batches
from fedfuse.runtime.losses import kl
from fedfuse.runtime.optimizers import Stepper
from fedfuse.runtime.pool import Progress, silence

CPU = torch.device("cpu")
GENERATOR_MOMENTS = (0.5, 0.999)
WEIGHT_STEP_DECAY = 0.99
"""Both of the papers' code."""

Combine = Callable[[Sequence[Tensor], Tensor], Tensor]
"""Teachers' logits and weights, which have a mean of 1, to the log-probabilities of all together."""


@dataclass(frozen=True)
class Wanted:
    """What inputs have to be: images are made from 0 to 1 and kept in bytes, features have these constants."""

    shape: tuple[int, ...]
    are_images: bool
    classes: int
    constants: Normalisation


@dataclass(frozen=True)
class Made:
    """Raw inputs, the classes that were wanted of them, and what each teacher then counts, 1 if all count the same."""

    inputs: Tensor
    labels: Tensor
    weights: Tensor = field(default_factory=lambda: torch.ones(0))


def mean_logits(said: Sequence[Tensor], weights: Tensor) -> Tensor:
    """The ensemble of FedDF and DENSE."""
    weighed = [weight * logits for weight, logits in zip(weights, said, strict=True)]
    return torch.stack(weighed).mean(dim=0).log_softmax(dim=1)


def as_made(inputs: Tensor) -> Tensor:
    """For networks that prepare inputs themselves."""
    return inputs


def synthesise(
    teachers: Sequence[Lend | nn.Module],
    wanted: Wanted,
    settings: SynthesisSettings,
    key: Key,
    *,
    students: Sequence[nn.Module] = (),
    combine: Combine = mean_logits,
    prepare: Callable[[Tensor], Tensor] = as_made,
    device: torch.device = CPU,
    kept: Made | None = None,
    progress: Progress = silence,
) -> Made:
    """As many inputs as ``settings.size`` says, of which those that were ``kept`` are there already and stay first.

    Teachers and students are called with what ``prepare`` makes of inputs (pixels from 0 to 1, features as they are),
    and answer with a logit for each class; a teacher whose network is not in memory yet is a function that lends it.
    Nobody is changed: students who rehearse are copies.
    """
    lends = [_lent(teacher) for teacher in teachers]
    for number, lend in enumerate(lends, start=1):
        _check_differentiable(f"teacher {number}", lend, prepare(torch.zeros(2, *wanted.shape, device=device)))
    work = _Synthesis(lends, wanted, settings, key, students, combine, prepare, device)
    return work.run(kept, progress)


class _Synthesis:
    """One synthesis at work."""

    def __init__(
        self,
        teachers: Sequence[Lend],
        wanted: Wanted,
        settings: SynthesisSettings,
        key: Key,
        students: Sequence[nn.Module],
        combine: Combine,
        prepare: Callable[[Tensor], Tensor],
        device: torch.device,
    ) -> None:
        self.teachers, self.wanted, self.settings, self.key = teachers, wanted, settings, key
        self.combine, self.prepare, self.device = combine, prepare, device
        self.students = [copy.deepcopy(student) for student in students if settings.divergence_weight]
        self.optimizers = [settings.rehearsal.build(student) for student in self.students]
        self.weights = torch.ones(len(teachers), device=device)
        self.inputs, self.labels, self.said = list[Tensor](), list[Tensor](), list[Tensor]()
        """Of all batches there are, the last being what each teacher says."""

    def run(self, kept: Made | None, progress: Progress) -> Made:
        older = 0 if kept is None else len(kept.inputs)
        if kept is not None and older:
            self._add(kept.inputs, kept.labels)
        batches = slices(self.settings.size - older, self.settings.batch_size)
        for number, rows in enumerate(batches):
            progress("synthesise", number, len(batches))
            key = self.key.child("batch", number)
            count = rows.stop - rows.start
            inputs, labels = self._make(max(2, count), key)  # BatchNorm cannot normalise one alone
            self._add(inputs[:count], labels[:count])
            if self.settings.weight_step:
                self._weigh(self.settings.weight_step * WEIGHT_STEP_DECAY**number, key.child("weigh"))
            for student, optimizer in zip(self.students, self.optimizers, strict=True):
                self._rehearse(student, optimizer, key.child("rehearse"))
        progress("synthesise", len(batches), len(batches))
        return Made(torch.cat(self.inputs), torch.cat(self.labels), self.weights.cpu())

    def _make(self, count: int, key: Key) -> tuple[Tensor, Tensor]:
        """One batch of a generator of its own: what it made when its loss was lowest."""
        settings, wanted, random = self.settings, self.wanted, key.child("noise").torch()
        with key.child("initialise").default_generator():
            generator = build_generator(
                wanted.shape, wanted.are_images, settings.latent, settings.width, wanted.constants
            )
        generator = generator.to(self.device)
        codes = torch.randn(count, settings.latent, generator=random).to(self.device).requires_grad_()
        labels = torch.randint(wanted.classes, (count,), generator=random).to(self.device)
        learning = [*generator.parameters(), codes]
        optimizer = torch.optim.Adam(learning, lr=settings.learning_rate, betas=GENERATOR_MOMENTS)
        best, lowest = None, math.inf
        for _ in range(settings.steps):
            made = generator(codes)
            loss = self.loss(made, labels)
            if best is None or loss.item() < lowest:
                best, lowest = made.detach(), loss.item()
            if not math.isfinite(loss.item()):  # no step leads back from there
                break
            optimizer.zero_grad()
            loss.backward(inputs=learning)
            optimizer.step()
        assert best is not None, "there is a step at least"
        if settings.perturbation:
            best = moved(best, self._ask, wanted.classes, self._perturbation, key.child("move").torch())
        return self._raw(best), labels.cpu()

    def loss(self, made: Tensor, labels: Tensor) -> Tensor:
        """The generator's, as in ``losses.py``."""
        settings, seen = self.settings, self.prepare(made)
        said, distances = zip(*(asked(teacher, seen) for teacher in self.teachers), strict=True)
        together = self._together(said, self.weights)
        loss = label_loss(together, labels, settings.hardness)
        loss = loss + settings.statistics_weight * torch.stack(distances).mean()
        for student in self.students:
            with evaluation_mode(student):
                unknown = divergence_loss(together, student(seen))
            loss = loss + settings.divergence_weight / len(self.students) * unknown
        return loss

    def _add(self, inputs: Tensor, labels: Tensor) -> None:
        self.inputs.append(inputs)
        self.labels.append(labels)
        if self.students or self.settings.weight_step:
            with torch.no_grad():
                said = [self._said(rows) for rows in inputs.split(self.settings.batch_size)]
                self.said.append(torch.cat(said, dim=1))

    def _said(self, inputs: Tensor) -> Tensor:
        """What each teacher says about raw inputs."""
        seen = self._seen(inputs)
        return torch.stack([asked(teacher, seen)[0] for teacher in self.teachers])

    def _weigh(self, step: float, key: Key) -> None:
        """Teachers' weights, mini-batch after mini-batch, towards those with which they find the wanted classes."""
        said, labels = torch.cat(self.said, dim=1), torch.cat(self.labels).to(self.device)
        for where in epoch_batches(len(labels), self.settings.batch_size, key):
            weights = self.weights.clone().requires_grad_()
            loss = label_loss(self._together(said[:, where], weights), labels[where])
            [slope] = torch.autograd.grad(loss, weights)
            changed = (self.weights - step * slope.sign().nan_to_num()).clamp(0, len(self.teachers))
            if changed.any():
                self.weights = changed

    def _rehearse(self, student: nn.Module, optimizer: Stepper, key: Key) -> None:
        """One pass over all inputs that there are."""
        inputs, said = torch.cat(self.inputs), torch.cat(self.said, dim=1)
        student.train()
        with key.child("dropout").default_generator():
            for where in epoch_batches(len(inputs), self.settings.batch_size, key.child("batches")):
                loss = kl(self._together(said[:, where], self.weights), student(self._seen(inputs[where])))
                optimizer.zero_grad()
                loss.backward()
                if loss.isfinite():
                    optimizer.step()

    def _together(self, said: Sequence[Tensor] | Tensor, weights: Tensor) -> Tensor:
        return self.combine(list(said), weights * len(weights) / weights.sum())

    def _ask(self, made: Tensor) -> Tensor:
        """What the teachers say together about inputs as a generator makes them, with gradients."""
        seen = self.prepare(made)
        return self._together([asked(teacher, seen)[0] for teacher in self.teachers], self.weights)

    @property
    def _perturbation(self) -> float | Tensor:
        if self.wanted.are_images:
            return self.settings.perturbation
        deviation = torch.tensor(self.wanted.constants.std, device=self.device)
        return self.settings.perturbation * deviation.reshape(-1, *[1] * (len(self.wanted.shape) - 1))

    def _raw(self, made: Tensor) -> Tensor:
        """As inputs are kept."""
        return (255 * made.clamp(0, 1)).round().to(torch.uint8).cpu() if self.wanted.are_images else made.cpu()

    def _seen(self, raw: Tensor) -> Tensor:
        """What networks are shown of inputs as they are kept."""
        made = raw.to(self.device)
        return self.prepare(made.float() / 255 if self.wanted.are_images else made)


def _check_differentiable(name: str, lend: Lend, inputs: Tensor) -> None:
    inputs.requires_grad_()
    with torch.enable_grad():
        try:
            said, _ = lend_and_ask(lend, inputs)
        except Exception as error:  # whatever a stranger's network raises
            raise ConfigError(f"{name} cannot answer about inputs that are made: {first_line(error)}") from error
    if not said.requires_grad or torch.autograd.grad(said.sum(), inputs, allow_unused=True)[0] is None:
        raise ConfigError(
            f"{name} gives no gradients, as no ONNX model does, so that inputs cannot be made from it; give inputs, or "
            "leave it out"
        )


def _lent(teacher: Lend | nn.Module) -> Lend:
    return (lambda: nullcontext(teacher)) if isinstance(teacher, nn.Module) else teacher
