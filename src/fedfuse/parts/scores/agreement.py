"""Cronus' robust mean (Chang et al., 2019): answers that stray along the direction of most disagreement do not count.

For every input, of the teachers' vectors z_1 .. z_m, drop floor(epsilon m) one after another: each time the vector with
the largest |v . (z_k - mean)|, where v is the top eigenvector of the remaining vectors' covariance; then take the mean
of the rest. This is the filter of Diakonikolas et al. (2017) with a fixed number of removals.

The vectors are what is averaged: the predictions that clients send, or what a fusion's teachers say.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.parts.scores.comparing import ByComparison


class ByAgreement(ByComparison):
    """A client that disagrees with the others about an input is not heard on it."""

    kind: Literal["agreement"] = "agreement"
    epsilon: float = Field(0.2, ge=0, lt=0.5, description="share of the clients that may be wrong, or malicious")

    def of_answers(self, answers: Tensor) -> Tensor:
        by_input = answers.transpose(0, 1)
        counts = torch.ones(by_input.shape[:2], dtype=torch.float64, device=answers.device)
        for _ in range(int(self.epsilon * len(answers))):
            counts.scatter_(1, _farthest(by_input, counts).unsqueeze(1), 0.0)
        return (counts / counts.sum(dim=1, keepdim=True)).T.unsqueeze(2)


def _farthest(answers: Tensor, counts: Tensor) -> Tensor:
    """For every input, who of the counted clients strays most (answers: inputs x clients x classes)."""
    centre = (answers * counts.unsqueeze(2)).sum(dim=1) / counts.sum(dim=1, keepdim=True)
    apart = (answers - centre.unsqueeze(1)) * counts.unsqueeze(2)
    # Eigenvectors of the small clients x clients product instead of the classes x classes covariance: the component
    # of the top one for client k is its deviation along the top direction, up to a common factor.
    strays = torch.linalg.eigh(apart @ apart.mT).eigenvectors[:, :, -1].square()
    return torch.where(counts > 0, strays, -1.0).argmax(dim=1)
