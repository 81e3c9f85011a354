"""Programs that end runs in every way, again and again, and one that lets them run for long (docs/reliability.md)."""
