"""Task arithmetic (Ilharco et al., Editing Models with Task Arithmetic, ICLR 2023).

    tau_k = theta_k - theta;    sum:  theta + lambda sum_k tau_k;    mean:  theta + lambda (1/m) sum_k tau_k

Both are written as (1 - c) theta + c avg with c = lambda m or lambda, which is exactly the average where c is 1 and
exactly the base where it is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.parts.merge.piecewise import PiecewiseMerge, Stack, Survey
from fedfuse.parts.merge.trained import UniformMerge


class TaskArithmetic(UniformMerge, PiecewiseMerge):
    """The base, moved by what all models together have learnt since."""

    kind: Literal["task_arithmetic"] = "task_arithmetic"
    scale: float = Field(0.4, description="lambda; 0.4 where there is nothing to tune it on (TIES, Yadav et al., 2023)")
    form: Literal["sum", "mean"] = Field("sum", description="of the task vectors; sum as printed")

    def piece(self, stack: Stack, shares: Sequence[float], survey: Survey) -> Tensor:
        step = self.scale * (len(shares) if self.form == "sum" else 1)
        merged = (1 - step) * stack.base if step != 1 else torch.zeros_like(stack.base)
        for model, share in zip(stack.models, shares, strict=True):
            merged.add_(model, alpha=step * share)
        return merged
