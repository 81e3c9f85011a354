"""Averaging after alignment: every client's hidden units are brought into one order first.

Hidden units have no order of their own, so two networks that compute the same may have an average that does not. Each
client's network is permuted into the order of the network that was broadcast, by weight matching (Ainsworth et al., Git
Re-Basin: Merging Models modulo Permutation Symmetries, ICLR 2023; ``models/permutations/``), which leaves what it
computes as it is; then

    x_t = sum_k (n_k / sum_j n_j) P_k(xhat_k)

BatchNorm statistics move with their channels. Averaged statistics do not fit averaged weights well (Jordan et al.,
REPAIR, ICLR 2023): ``federation.batch_norm: reestimate`` computes them anew on public inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Update
from fedfuse.core.weights import mean
from fedfuse.models.adapt import probe_batch
from fedfuse.models.permutations import ITERATIONS, Units, aligned, units_of
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView
from fedfuse.parts.merge.base import Merged, WeightedMerge
from fedfuse.runtime.bank import ModelBank


class Aligned(WeightedMerge):
    """Weighted mean of the clients' weights, their hidden units in the order of the network that was broadcast."""

    kind: Literal["aligned"] = "aligned"
    reorders_units: ClassVar[bool] = True
    iterations: int = Field(
        ITERATIONS, ge=0, description="times in which every client is matched again, with the mean of all others"
    )
    partly: bool = Field(
        False, description="whether layers whose units cannot be followed stay as they are; else the model is refused"
    )

    def check(self, context: CheckContext) -> None:
        for prototype, architecture in context.bank.architectures.items():
            try:
                self._units(context.bank, prototype)
            except ConfigError as reason:
                raise ConfigError(
                    f"method.merge aligned cannot bring model '{prototype}' ({architecture.arch}) into another order: "
                    f"{reason}"
                ) from None

    def merge(self, view: ServerView, prototype: str, updates: Sequence[Update]) -> Merged:
        reference, units = view.weights[prototype].here, self._units(view.bank, prototype)
        networks = aligned(
            units, reference.layout, reference, [u.weights.here for u in updates], view.key, self.iterations
        )
        average = mean(networks, self.coefficients([update.examples for update in updates]))
        return Merged(average, last=networks[-1])

    def _units(self, bank: ModelBank, prototype: str) -> Units:
        return units_of(bank.network(prototype), probe_batch(bank.input_shape)).required(self.partly)
