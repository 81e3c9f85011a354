"""What experiments will cost, from a few rounds in miniature: nothing is trained for long, and nothing is written."""

from fedfuse.experiment.estimate.estimate import Estimate, estimate_all, estimate_of

__all__ = ["Estimate", "estimate_all", "estimate_of"]
