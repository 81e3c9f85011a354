"""How parts bring down what clients tell them, where it is out of all proportion to what the others tell.

Whoever says nothing unusual keeps the very object that it sent, so that everybody can see that it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from fedfuse.core.fences import within_fences
from fedfuse.core.messages import Tensors


def counts_within(said: Sequence[Tensors], name: str, examples: Sequence[int]) -> list[Tensors]:
    """Label counts that are together no more than the client's examples; fewer, where a client counts for fewer."""
    totals = [float(own[name].double().sum()) for own in said]
    factors = [1.0 if total <= most else most / total for total, most in zip(totals, examples, strict=True)]
    return scaled(said, name, factors)


def sizes_within(said: Sequence[Tensors], name: str, size: Callable[[Tensors], float]) -> list[Tensors]:
    """A tensor of each client, made smaller where it is beyond the fence of the others' sizes."""
    return scaled(said, name, within_fences([size(own) for own in said]))


def shares_claimed(claims: Sequence[Tensor] | Tensor) -> list[float]:
    """How much clients claim to count, input by input, each as one number: 1 is as much as the median client's claim.

    A client that is sure of few inputs may claim as much as one that is a little surer everywhere.
    """
    table = torch.stack([claim.double() for claim in claims])
    usual = table.where(table > 0, torch.nan).nanmedian(dim=0).values.nan_to_num(nan=1.0)
    return [float(share) for share in (table / usual).mean(dim=1)]


def scaled(said: Sequence[Tensors], name: str, factors: Sequence[float]) -> list[Tensors]:
    """One tensor of each client times a factor."""
    return [
        own if factor == 1 else {**own, name: (own[name].double() * factor).to(own[name].dtype)}
        for own, factor in zip(said, factors, strict=True)
    ]
