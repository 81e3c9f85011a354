"""The one divergence of distillation, KL(teacher || student)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def kl_by_class(teacher: Tensor, student: Tensor) -> Tensor:
    """p_c (log p_c - log q_c) for every row and class; ``teacher`` are log-probabilities, ``student`` logits."""
    return F.kl_div(student.log_softmax(dim=1), teacher, log_target=True, reduction="none")


def kl(teacher: Tensor, student: Tensor) -> Tensor:
    """The mean over rows."""
    return kl_by_class(teacher, student).sum() / len(student)


def kl_to_probabilities(teacher: Tensor, student: Tensor) -> Tensor:
    """The same for ``teacher`` as probabilities, of which some may be zero."""
    return F.kl_div(student.log_softmax(dim=1), teacher, reduction="batchmean")
