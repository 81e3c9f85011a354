"""What there is to say about a round's fusion: steps, and how near students came to the ensemble that taught them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedfuse.core.messages import Update
from fedfuse.core.weights import Weights
from fedfuse.federation import RoundRecord
from fedfuse.parts.context import ServerView
from fedfuse.parts.fuse import EnsembleOnly, Fuse
from fedfuse.parts.fuse.ensemble import EnsembleFuse
from fedfuse.runtime.losses import kl
from fedfuse.runtime.predict import logits_on

LOOKED_AT = 1024
"""Public inputs that are looked at, at most: teachers are asked once more about them."""

Report = dict[str, dict[str, float]]
"""Numbers by model and by name."""


def report_of(
    record: RoundRecord, view: ServerView, fuse: Fuse, weights: Mapping[str, Weights], teachers: Sequence[Update]
) -> Report:
    """Of every model that was fused."""
    report = {
        model: {name.replace("_", "-"): value for name, value in own.fusion.items()}
        for model, own in record.prototypes.items()
        if own.fusion
    }
    if report and teachers and isinstance(fuse, EnsembleFuse):
        losses = distances(view, fuse, {model: weights[model] for model in report}, teachers)
        return {model: {**own, "loss": losses[model]} for model, own in report.items()}
    return report


def distances(
    view: ServerView, fuse: EnsembleFuse, students: Mapping[str, Weights], teachers: Sequence[Update]
) -> dict[str, float]:
    """Mean KL(ensemble || student) by model, for the ensemble that has no teachers but the clients."""
    source = view.public.part(view.public.mixed[:LOOKED_AT])
    ensemble = EnsembleOnly(target=fuse.target).ensemble(view, {}, teachers)
    assert ensemble is not None, "clients are not asked for scores"
    target = ensemble(source.inputs(source.all_indices())).cpu()
    return {
        model: float(kl(target, logits_on(source, view.bank.lend(model, weights))))
        for model, weights in students.items()
    }
