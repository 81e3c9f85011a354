"""How parts bring down what clients tell them, where it is out of all proportion to what the others tell.

Whoever says nothing unusual keeps the very object that it sent, so that everybody can see that it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from fedfuse.core.fences import fences_of_counts, within_fences
from fedfuse.core.messages import Tensors


def counts_within(said: Sequence[Tensors], name: str, examples: Sequence[int]) -> list[Tensors]:
    """Label counts that are together no more than the client's examples, and of each class within the others' fence.

    Whoever says that all its examples are of one class would else speak for that class alone. Where clients have
    classes in different amounts nobody could know, and the counts stay.
    """
    totals = [float(own[name].double().sum()) for own in said]
    factors = [1.0 if total <= most else most / total for total, most in zip(totals, examples, strict=True)]
    return by_class_within(scaled(said, name, factors), name)


def by_class_within(said: Sequence[Tensors], name: str) -> list[Tensors]:
    """Label counts none of which is beyond the fence of the others' of the same class, where these are alike."""
    table = torch.stack([own[name].double() for own in said])
    fences = torch.tensor([fences_of_counts(column) for column in table.T.tolist()], dtype=torch.float64).T
    bounded = torch.minimum(table, fences)
    return [
        own if torch.equal(before, after) else {**own, name: after.to(own[name].dtype)}
        for own, before, after in zip(said, table, bounded, strict=True)
    ]


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
