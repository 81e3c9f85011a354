"""What a fusion is asked to do, in one value: the command line and Python come to the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field, JsonValue, ValidationError
from torch import nn

from fedfuse.core.errors import ConfigError, unknown
from fedfuse.core.part import Settings, first_mistake
from fedfuse.fusing.merged import MERGES
from fedfuse.models.modes import batch_norms
from fedfuse.parts.fuse.distiller import Distiller
from fedfuse.parts.fuse.swa import Swa
from fedfuse.parts.voting import Voting
from fedfuse.runtime.optimizers import Adam

AUTO: Final = "auto"
STEPS = 2000
"""Of a student: three minutes for a small network on two cores."""
WITH_BATCH_NORM, WITHOUT = 3e-3, 1e-3
"""Adam's rate: a ResNet-8 on CIFAR learnt more with the first, a network without BatchNorm with the second."""
THREADS = 2
"""Fixed, because the number of threads can change the last bit."""

VOTINGS: Mapping[str, Voting | None] = {
    "auto": None,
    "feddf": Voting(target="mean_logits"),
    "fedbe": Voting(target="mean_probabilities"),
    "feded": Voting(target="mean_probabilities", weighting="given"),
    "probabilities": Voting(target="mean_probabilities"),
    "confidence": Voting(target="mean_probabilities", weighting="confidence"),
    "entropy": Voting(target="mean_probabilities", weighting="entropy"),
}
"""Methods that distil, and the ensemble that each of them asks; auto: the one that measures best."""


class FusePlan(Settings):
    """How trained models become one."""

    method: str = Field(
        "auto",
        description="auto; feddf, fedbe, feded, probabilities, confidence, entropy; or a merge of same-shaped weights",
    )
    weights: tuple[float, ...] | None = Field(
        None, description="of feded: how much each model counts, such as the number of examples it was trained on"
    )
    sure: bool | Literal["auto"] = Field(
        AUTO,
        description="make the ensemble as sure of itself as it is right about labelled examples, or as its models are "
        "on average; auto: where the method is",
    )
    start: str = Field("auto", description="where the student begins: auto, fresh, the name of a model, or a merge")
    merge: dict[str, JsonValue] = Field(default_factory=dict, description="settings of the merge that start names")
    steps: int = Field(STEPS, ge=0, description="of the student; 0: the start as it is")
    batch_size: int = Field(128, ge=2)
    learning_rate: float | None = Field(
        None,
        gt=0,
        description="of Adam at first, from where it falls to zero as a cosine; 0.003 for networks with BatchNorm and "
        "0.001 for others if not given",
    )
    temperature: float = Field(1.0, gt=0, description="of the ensemble and the student inside KL")
    loss: Literal["kl", "kl_elementwise", "mse", "kl_mse", "hard"] = "kl"
    augment: tuple[Literal["crop", "flip"], ...] = Field(
        (), description="how the images that the student sees are changed at every step"
    )
    samples: int = Field(10, ge=0, description="of fedbe: models drawn around those of the same architecture")
    as_lora: bool = Field(False, description="write the change from the base as a LoRA adapter for peft")
    rank: int = Field(16, ge=1, le=65_536, description="of that adapter; what it leaves out is said")
    seed: int = Field(0, ge=0, lt=2**128)
    limit: int | None = Field(None, ge=2, description="at most so many inputs, drawn at random")
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    workers: int = Field(1, ge=1, le=1024, description="processes in which models are asked; the same bits")
    threads: int = Field(THREADS, ge=1, le=1024, description="of the processor; another number may change last bits")

    @staticmethod
    def of(method: str, wishes: Mapping[str, Any]) -> FusePlan:
        """The plan with these wishes, or one sentence about what is wrong with them."""
        if method not in VOTINGS and method not in MERGES:
            raise ConfigError(unknown("method", method, [*VOTINGS, *MERGES]))
        if method in MERGES:
            if wishes.get("start", method) != method:
                raise ConfigError(f"method {method} is the start already; leave start out")
            wishes = {"steps": 0, **wishes, "start": method}
        strange = [key for key in wishes if key not in FusePlan.model_fields]
        if strange:
            raise ConfigError(unknown("option", strange[0], FusePlan.model_fields))
        try:
            plan = FusePlan(method=method, **wishes)
        except ValidationError as error:
            raise ConfigError(first_mistake(error)) from None
        if "rank" in plan.model_fields_set and not plan.as_lora:
            raise ConfigError("rank is that of a LoRA adapter; say as_lora, too (--as lora)")
        if plan.merge and plan.start not in MERGES:
            raise ConfigError("merge has settings of a merge, but neither method nor start names one")
        if (plan.weights is not None) != (method == "feded"):
            raise ConfigError("weights are what feded counts models by; give both or neither")
        if plan.weights is not None and (min(plan.weights, default=0) < 0 or sum(plan.weights) <= 0):
            raise ConfigError("weights must not be negative, and one at least above 0")
        return plan

    @property
    def voting(self) -> Voting | None:
        """The ensemble that the method asks; None: whichever measures best."""
        return VOTINGS.get(self.method)

    @property
    def makes_sure(self) -> bool:
        """Whether the ensemble's sureness is mended; what a method's equation says is left as it is."""
        return self.method == AUTO if self.sure == AUTO else self.sure

    def distiller(self, student: nn.Module) -> Distiller:
        """How the student is taught; FedBE averages the students that it passes through."""
        rate = self.learning_rate or (WITH_BATCH_NORM if batch_norms(student) else WITHOUT)
        swa = None
        if self.method == "fedbe" and self.steps >= 100:
            swa = Swa(collect_after=self.steps // 2, cycle=25)
        return Distiller(
            steps=self.steps,
            batch_size=self.batch_size,
            optimizer=Adam(learning_rate=rate),
            temperature=self.temperature,
            loss=self.loss,
            keep="last",
            schedule="constant" if swa else "cosine",
            swa=swa,
        )
