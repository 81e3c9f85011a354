"""Per-label logits shared between clients: federated distillation (Jeong et al., 2018; Seo et al., 2020).

minimise F_k(w) + lambda T^2 mean_{(x,y)} KL( sigma(G_k[y] / T) || sigma(f(w, x) / T) )

G_k[y] = mean over clients j of S_j[y] / c_j[y], where client j summed its logits for examples of label y into S_j[y].
A row that nobody could fill is NaN, on the server and on its way to a client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from fedfuse.core.messages import Tensors, Update
from fedfuse.core.weights import Weights
from fedfuse.parts.base import Shapes
from fedfuse.parts.claims import sizes_within
from fedfuse.parts.context import ClientContext, ServerView
from fedfuse.parts.local.objective import Batch, Hooks, Objective
from fedfuse.parts.tensor_spec import TensorSpec
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.losses import kl_by_class

TARGETS, SUMS, COUNTS = "label_logits", "logit_sums", "logit_counts"


class LabelLogits(Objective):
    """Cross-entropy plus a pull of the outputs towards other clients' mean logits for the same label."""

    kind: Literal["label_logits"] = "label_logits"
    stacks: ClassVar[bool] = True
    nan_is_no_value: ClassVar[bool] = True
    coefficient: float = Field(0.1, ge=0, description="lambda: weight of the distillation term; FedGen's code used 1")
    temperature: float = Field(1.0, gt=0, description="T: divides the logits of both sides")
    send: Literal["leave_one_out", "participants"] = Field(
        "leave_one_out",
        description="whose means a client receives: those of all other clients seen so far, or of the last round's",
    )
    sums: Literal["all_visits", "each_visit"] = Field(
        "all_visits",
        description="whether a client's sums go on from visit to visit, or start afresh at each, as FD was printed",
    )
    count_from: Literal[0, 1] = Field(
        1,
        description="what counts start at. 0: as FD was printed; 1: as FedGen's and FedGKD's code, which brings a mean "
        "of n logits nearer to zero by n / (n + 1)",
    )

    def begin(self, client: ClientContext) -> Hooks:
        return _LabelLogitsHooks(client, self) if self.coefficient else Hooks()

    def broadcast(self, view: ServerView, chosen: Mapping[int, str]) -> Mapping[int, Tensors]:
        targets = {client: self._targets(view.memory, client) for client in chosen}
        return {client: {TARGETS: rows} for client, rows in targets.items() if rows is not None}

    def update_spec(self, bank: ModelBank, prototype: str) -> Shapes:
        if not self.coefficient:
            return {}
        return {SUMS: (bank.classes, bank.classes), COUNTS: TensorSpec((bank.classes,), least=0)}

    def in_range(self, extras: Tensors) -> Tensors:
        return {**extras, COUNTS: extras[COUNTS].clamp_min(0)} if COUNTS in extras else extras

    def within_bounds(self, said: Sequence[Tensors], examples: Sequence[int]) -> list[Tensors]:
        """Nobody's mean logits are much louder than the others'."""
        return sizes_within(said, SUMS, lambda own: float(self.class_means(own).nan_to_num().double().norm()))

    def after_round(self, view: ServerView, updates: Sequence[Update], weights: Mapping[str, Weights]) -> Tensors:
        """Remember each client's class means, by its number."""
        if not self.coefficient or not updates:
            return view.memory
        older = view.memory if self.send == "leave_one_out" else {}
        return {**older, **{str(update.client): self.class_means(update.extras) for update in updates}}

    def class_means(self, extras: Tensors) -> Tensor:
        """One client's mean logits by label; NaN for a label that it never saw, so that it has no say there."""
        sums, counts = extras[SUMS], extras[COUNTS].unsqueeze(1)
        return torch.where(counts >= self.count_from + 1, sums / counts, torch.nan)

    def _targets(self, means: Tensors, receiver: int) -> Tensor | None:
        """G of one client, or None if there is nobody to learn from."""
        # By number, because a checkpoint does not keep the order, and the order decides the last bit of a sum.
        senders = sorted(int(client) for client in means)
        if self.send == "leave_one_out":
            senders = [client for client in senders if client != receiver]
        if not senders:
            return None
        stacked = torch.stack([means[str(client)] for client in senders])
        return stacked.double().nanmean(dim=0).to(stacked.dtype)


class _LabelLogitsHooks(Hooks):
    def __init__(self, client: ClientContext, objective: LabelLogits) -> None:
        classes, device = client.bank.classes, client.bank.compute.device
        before = client.state if objective.sums == "all_visits" else {}
        self.objective = objective
        self.counts = before.get(COUNTS, torch.full((classes,), float(objective.count_from))).to(device)
        self.sums = before.get(SUMS, torch.zeros(classes, classes)).to(device)
        targets = client.received.get(TARGETS)
        self.targets = None if targets is None else _Targets(targets.to(device), objective)

    def penalty(self, batch: Batch, features: Tensor, logits: Tensor) -> Tensor | None:
        self._add(batch.labels, logits.detach())
        return self.targets.loss(batch.labels, logits) if self.targets else None

    def _add(self, labels: Tensor, logits: Tensor) -> None:
        # A product instead of index_add_, whose order of summation is not fixed on a GPU.
        of_label = F.one_hot(labels, len(self.counts)).to(logits.dtype).T
        self.sums = self.sums + of_label @ logits
        self.counts = self.counts + of_label.sum(dim=1)

    def extras(self) -> Tensors:
        return {SUMS: self.sums.cpu(), COUNTS: self.counts.cpu()}

    def state(self) -> Tensors:
        return self.extras() if self.objective.sums == "all_visits" else {}


class _Targets:
    """The received logits by label, ready to compare with; a label without any costs nothing."""

    def __init__(self, targets: Tensor, objective: LabelLogits) -> None:
        self.known = ~targets.isnan().any(dim=1)
        self.temperature = objective.temperature
        self.scale = objective.coefficient * objective.temperature**2
        self.targets = (targets.nan_to_num() / self.temperature).log_softmax(dim=1)

    def loss(self, labels: Tensor, logits: Tensor) -> Tensor:
        divergence = kl_by_class(self.targets[labels], logits / self.temperature).sum(dim=1)
        return self.scale * (divergence * self.known[labels]).mean()
