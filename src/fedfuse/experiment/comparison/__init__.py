"""Several methods, seeds and experiments side by side: which runs there are, and what they say together."""

from fedfuse.experiment.comparison.outcome import conclude
from fedfuse.experiment.comparison.plan import Cell, Plan, plan
from fedfuse.experiment.comparison.rehearsal import rehearse
from fedfuse.experiment.comparison.running import complete, finished_runs
from fedfuse.experiment.looking.comparison import Comparison
from fedfuse.experiment.looking.rows import MetricSpread, Row, Spread

__all__ = [
    "Cell",
    "Comparison",
    "MetricSpread",
    "Plan",
    "Row",
    "Spread",
    "complete",
    "conclude",
    "finished_runs",
    "plan",
    "rehearse",
]
