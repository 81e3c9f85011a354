"""Several methods, seeds and experiments side by side: which runs there are, and what they say together."""

from fedfuse.comparison.outcome import Comparison, Row, Spread, conclude
from fedfuse.comparison.plan import Cell, Plan, plan
from fedfuse.comparison.rehearsal import rehearse

__all__ = ["Cell", "Comparison", "Plan", "Row", "Spread", "conclude", "plan", "rehearse"]
