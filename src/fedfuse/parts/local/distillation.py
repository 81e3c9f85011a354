"""What the FedGKD family shares: the server's buffer of global models, and the pull towards teachers' predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from fedfuse.core.weights import Weights
from fedfuse.models import Classifier
from fedfuse.parts.context import ServerView
from fedfuse.parts.local.objective import Batch, Hooks, Objective, Visit
from fedfuse.runtime.bank import TEACHER


class BufferedDistillation(Objective):
    """Cross-entropy plus distillation from the latest global models.

    Every round adds one model per prototype to the buffer, the one that it broadcast: w_t of the paper. The initial
    network is none of them unless asked for, so that a prototype has no teacher until it was trained once. One without
    clients in a later round keeps its weights: w_{t+1} = w_t, and the buffer holds that model twice.
    """

    remembers_weights: ClassVar[bool] = True
    buffer: int = Field(5, ge=1, description="M: how many global models teach, the current one included")
    buffer_initial: bool = Field(
        False,
        description="whether the initial network is one of them, from round 2 on until M later ones are there; the "
        "released code buffers aggregated models only",
    )
    loss: Literal["kl", "mse"] = Field("kl", description="kl: of the predictions; mse: of the logits, FedGKD Table 9")
    temperature: float = Field(1.0, gt=0, description="of teacher and student inside kl, which is scaled by its square")

    def distance(self, teacher: Tensor, student: Tensor) -> Tensor:
        """How far a student's logits are from a teacher's, mean over the batch."""
        if self.loss == "mse":
            return F.mse_loss(student, teacher)
        target, answer = ((logits / self.temperature).log_softmax(dim=1) for logits in (teacher, student))
        return F.kl_div(answer, target, log_target=True, reduction="batchmean") * self.temperature**2

    def taught_by(self, visit: Visit, models: Sequence[Weights], coefficients: Sequence[float]) -> Hooks:
        """A session with these models as teachers, in eval mode, each with the weight of its term."""
        networks = [
            visit.bank.lend(visit.task.prototype, weights, f"{TEACHER}/{index}").eval()
            for index, weights in enumerate(models)
        ]
        return _TaughtHooks(self, [Teacher(*pair) for pair in zip(networks, coefficients, strict=True)])

    def remember_models(self, view: ServerView, weights: Mapping[str, Weights]) -> dict[str, Tensor]:
        """The memory of the next round: each prototype's teachers but for ``weights``, its newest; one row each.

        A prototype that is still its initial network, and has nobody to learn from, is not in it.
        """
        kept = {prototype: self._past(view, prototype, new) for prototype, new in weights.items()}
        return {models_of(prototype): rows[: self.buffer - 1] for prototype, rows in kept.items() if rows is not None}

    def _past(self, view: ServerView, prototype: str, new: Weights) -> Tensor | None:
        broadcast = view.weights[prototype]
        newest, older = broadcast.flat.unsqueeze(0), view.memory.get(models_of(prototype))
        if older is not None:
            return torch.cat([newest, older])
        if self.buffer_initial:
            return newest
        return None if new.equals(broadcast) else newest[:0]


def past_models(view: ServerView, prototype: str) -> Tensor | None:
    """The models that teach beside the one that is broadcast, newest first, one row each; None if nobody teaches."""
    return view.memory.get(models_of(prototype))


def models_of(prototype: str) -> str:
    """Where the server's memory has a prototype's past models."""
    return f"models/{prototype}"


@dataclass(frozen=True)
class Teacher:
    """A network that is asked, and the coefficient of its term in the loss."""

    network: Classifier
    coefficient: float

    @torch.no_grad()
    def logits(self, inputs: Tensor) -> Tensor:
        answer: Tensor = self.network(inputs)
        return answer


class _TaughtHooks(Hooks):
    def __init__(self, objective: BufferedDistillation, teachers: Sequence[Teacher]) -> None:
        self.objective = objective
        self.teachers = teachers

    def penalty(self, batch: Batch, features: Tensor, logits: Tensor) -> Tensor:
        distances = [self.objective.distance(teacher.logits(batch.inputs), logits) for teacher in self.teachers]
        terms = [teacher.coefficient * far for teacher, far in zip(self.teachers, distances, strict=True)]
        return torch.stack(terms).sum()
