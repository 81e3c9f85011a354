"""How much each key matters: fANOVA (Hutter et al., 2014), as Optuna computes it, where it is installed."""

from __future__ import annotations

from collections.abc import Sequence

from fedfuse.core.errors import MissingExtraError
from fedfuse.experiment.sweep.space import Space
from fedfuse.experiment.sweep.suggesting import Known, Tpe

FEWEST = 8
"""Finished trials, below which it would say nothing."""


def importance(space: Space, known: Known, higher_is_better: bool) -> dict[str, float]:
    """The share of the differences between finished trials that goes back to each key which all of them have."""
    finished = [(values, outcome) for values, outcome in known if outcome is not None and outcome.state == "finished"]
    common = _common(finished)
    if len(finished) < FEWEST or len(common) < 2 or len({outcome.value for _, outcome in finished if outcome}) < 2:
        return {}
    try:
        tpe = Tpe(space, 0, higher_is_better)
    except MissingExtraError:
        return {}
    study = tpe.study(finished, seed=0)
    evaluator = tpe.optuna.importance.FanovaImportanceEvaluator(seed=0)
    found = tpe.optuna.importance.get_param_importances(study, evaluator=evaluator, params=common)
    return {key: float(share) for key, share in found.items()}


def _common(finished: Known) -> list[str]:
    """Keys that every trial has, and not all with the same value."""
    keys: Sequence[str] = list(finished[0][0]) if finished else []
    in_all = [key for key in keys if all(key in values for values, _ in finished)]
    return [key for key in in_all if len({repr(values[key]) for values, _ in finished}) > 1]
