"""Sweeps: many settings of one experiment tried, by every combination or by what did well so far."""

from fedfuse.experiment.sweep.result import Sweep, Trial
from fedfuse.experiment.sweep.sweep import SweepPlan, plan_sweep

__all__ = ["Sweep", "SweepPlan", "Trial", "plan_sweep"]
