"""What the FedGKD family shares: the server's buffer of global models, and the pull towards teachers' predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from fedfuse.core.messages import Tensors
from fedfuse.core.weights import Weights
from fedfuse.local.objective import Batch, Hooks, Objective, Visit
from fedfuse.models import Classifier
from fedfuse.runtime.bank import TEACHER
from fedfuse.runtime.view import ServerView


class BufferedDistillation(Objective):
    """Cross-entropy plus distillation from the latest global models.

    Every round adds one model per prototype to the buffer, the one that it broadcast: w_t of the paper. A prototype
    without clients in a round keeps its weights, so w_{t+1} = w_t and the buffer holds that model twice.
    """

    kind: str
    remembers_weights: ClassVar[bool] = True
    buffer: int = Field(5, ge=1, description="M: how many global models teach, the current one included")
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


def recent_models(view: ServerView, prototype: str) -> list[Weights]:
    """The buffer's models, newest first, and before them the one that is broadcast now."""
    current = view.weights[prototype]
    return [current, *(Weights(flat, current.layout) for flat in view.memory.get(_models(prototype), ()))]


def past_models(view: ServerView, prototype: str) -> Tensors:
    """The buffer's models without the current one, as they are remembered and travel: one row each."""
    name = _models(prototype)
    return {"models": view.memory[name]} if name in view.memory else {}


def remember_models(view: ServerView, buffer: int) -> dict[str, Tensor]:
    """The memory of the next round, whose own model completes the buffer."""
    if buffer == 1:
        return {}
    kept = {prototype: recent_models(view, prototype)[: buffer - 1] for prototype in view.weights}
    return {_models(prototype): torch.stack([model.flat for model in models]) for prototype, models in kept.items()}


def _models(prototype: str) -> str:
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

    def penalty(self, batch: Batch, features: Tensor, logits: Tensor) -> Tensor:  # noqa: ARG002 - predictions only
        distances = [self.objective.distance(teacher.logits(batch.inputs), logits) for teacher in self.teachers]
        terms = [teacher.coefficient * far for teacher, far in zip(self.teachers, distances, strict=True)]
        return torch.stack(terms).sum()
