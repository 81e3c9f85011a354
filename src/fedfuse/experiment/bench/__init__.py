"""How fast is fedfuse here? Workloads, a hand-written loop beside each, and the taking of turns (docs/performance.md).

Peers read works, networks and workloads in environments that have torch and NumPy but none of our other dependencies,
so that no module imports more than these before somebody plays.
"""
