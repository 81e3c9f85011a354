"""From where to where an axis goes, and at which round numbers it is marked; for every way of drawing."""

from __future__ import annotations

import math

LEAST_SPAN = 5.0  # percentage points; less would make noise look like progress
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
WHOLE_STEPS = (1.0, 2.0, 5.0, 10.0)


def accuracy_limits(lowest: float, highest: float) -> tuple[float, float]:
    """Limits in percent with some air, hardly beyond 0 and 100, that never magnify a tiny range."""
    missing = max(0.0, LEAST_SPAN - (highest - lowest)) / 2
    lowest, highest = lowest - missing, highest + missing
    span = highest - lowest
    return max(lowest - 0.05 * span, -0.02 * span), min(highest + 0.05 * span, 100 + 0.02 * span)


def round_ticks(lowest: float, highest: float, most: int = 6, whole: bool = False) -> list[float]:
    """Up to so many round numbers between two numbers, equally far apart; one number alone is its own tick."""
    span = highest - lowest
    if not span > 0:
        return [lowest]
    magnitude = 10.0 ** math.floor(math.log10(span / max(most, 1)))
    factors, magnitude = (WHOLE_STEPS, max(magnitude, 1.0)) if whole else (STEPS, magnitude)
    step = next(factor * magnitude for factor in (*factors, 20.0) if span / (factor * magnitude) <= most)
    first = math.ceil(lowest / step - 1e-9)
    return [number * step for number in range(first, math.floor(highest / step + 1e-9) + 1)]
