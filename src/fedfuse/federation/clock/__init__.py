"""A simulated clock: how long rounds would take on devices that are slow, far away, or not there (docs/clock.md)."""
