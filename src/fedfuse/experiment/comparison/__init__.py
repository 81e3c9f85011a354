"""Several methods, seeds and experiments side by side: which runs there are, and what they say together."""

from fedfuse.experiment.comparison.outcome import Comparison, MetricSpread, Row, Spread, conclude
from fedfuse.experiment.comparison.plan import Cell, Plan, plan
from fedfuse.experiment.comparison.rehearsal import rehearse

__all__ = ["Cell", "Comparison", "MetricSpread", "Plan", "Row", "Spread", "conclude", "plan", "rehearse"]
