"""How inputs are synthesised, in DENSE's numbers unless something else is said."""

from __future__ import annotations

from pydantic import Field

from fedfuse.core.part import Settings
from fedfuse.runtime.optimizers import Adam, AnyOptimizer


class SynthesisSettings(Settings):
    """What determines the inputs, beside the teachers: DENSE, and what Co-Boosting adds to it."""

    size: int = Field(2048, ge=2, description="number of inputs")
    batch_size: int = Field(128, ge=2, description="inputs that one generator makes; the next batch has a new one")
    steps: int = Field(30, ge=1, description="steps that a generator is trained for (T_G of DENSE)")
    learning_rate: float = Field(1e-3, gt=0, description="of the generator's Adam, whose first moment decays by 0.5")
    latent: int = Field(256, ge=1, le=10_000, description="how many random numbers an input is made from")
    width: int = Field(
        64, ge=1, le=1000, description="channels before a generator's last layer, and half of its hidden units"
    )
    statistics_weight: float = Field(
        1.0, ge=0, description="how much inputs have to look familiar to BatchNorm layers (lambda_1 of DENSE)"
    )
    divergence_weight: float = Field(
        0.5, ge=0, description="how much students have to disagree with the teachers about them (lambda_2 of DENSE)"
    )
    rehearsal: AnyOptimizer = Field(
        default_factory=Adam,
        description="how the students with whom teachers are compared learn: one pass over all inputs after each batch",
    )
    hardness: float = Field(0.0, ge=0, description="power of an input's difficulty, by which it counts; Co-Boosting: 1")
    perturbation: float = Field(
        0.0,
        ge=0,
        description="how far inputs are moved to where the teachers' answer changes, pixels from 0 to 1 and features "
        "in deviations; Co-Boosting: 8/255",
    )
    weight_step: float = Field(
        0.0,
        ge=0,
        description="how much a teacher's weight changes at a step, as a share of an equal one, so that teachers "
        "together find the wanted classes; Co-Boosting: 0.1",
    )
