"""The order of hidden units, which a network's answers do not depend on: found, changed, brought into line."""

from fedfuse.models.permutations.aligning import ITERATIONS, align, aligned
from fedfuse.models.permutations.units import Axis, Group, Units, units_of

__all__ = ["ITERATIONS", "Axis", "Group", "Units", "align", "aligned", "units_of"]
